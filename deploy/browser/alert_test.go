//go:build browser

package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/mailtest"
	"github.com/weirlog/weir/tenants/webhooktest"
)

// By keyboard only, a person saves a search for everybody, sets an alert on
// it, and mutes it. What then comes fires it, which a webhook is sent; when no
// more comes, it is sent that it is over. An alert on errors is set as well:
// a webhook and the person's mail are sent the next new one. A colleague whom
// a note mentions gets mail.
func TestAlertsStory(t *testing.T) {
	hook, office := webhooktest.New(t, 0), mailtest.OpenPlain(t)
	t.Setenv("WEIR_SMTP_URL", "smtp://"+office.Address)
	t.Setenv("WEIR_SMTP_FROM", "Weir <weir@example.com>")
	t.Setenv("WEIR_WEBHOOK_CA_FILE", hook.Authority)
	t.Setenv("WEIR_WEBHOOK_NETWORKS", "127.0.0.0/8")
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	in.addMember(t, w.organization, "Bob Field", "developer", "field@acme.example", ownerPassword)
	made := in.bill(t, "POST", "/organizations/"+w.organization+"/webhooks",
		map[string]any{"url": hook.URL, "events": []string{"search_alert.firing", "search_alert.resolved", "error_alert.fired"}})
	hook.Trust(made["secret"].(string))
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)

	b.open("/console/logs?q=refund&last=1h")
	b.press("summary", "Saved")
	b.check("the menu of saved searches")
	b.leave("a", "Save this search", "Save a search")
	b.fill("Name", "Refunds")
	b.choose("Who sees it", "Everybody who reads logs")
	b.check("saving a search")
	b.leave("button", "Save", "Logs")
	b.awaitText("The search is saved.")
	b.await(`document.querySelector(".menu summary").textContent === "Refunds"`)

	b.open("/console/logs/searches")
	b.check("saved searches")
	b.leave("a", "Set an alert on Refunds", "Refunds")
	b.fill("Entries", "0")
	b.choose("In the last", "1 minute")
	b.choose("Looked at every", "1 minute")
	b.choose("Told at most", "each time it fires")
	b.check("setting an alert")
	in.send(t, w.key.Key, entry{Level: "error", Message: "a refund failed"})
	b.leave("button", "Set alert", "Refunds")
	b.awaitText("The alert is set.")
	page := ask[string](b, `location.pathname`)
	b.untilShown(page, "firing")
	testenv.Eventually(t, func() error { return hasTypes(hook, []string{"search_alert.firing"}) })
	b.check("a firing alert")
	b.leave("button", "Send a test", "Refunds")
	b.awaitText("A test is sent")
	b.leave("button", "Mute", "Refunds")
	b.awaitText("Nothing is told of the alert until then.")
	b.leave("button", "Tell again", "Refunds")
	b.untilShown(page, "ok")
	testenv.Eventually(t, func() error { return hasTypes(hook, []string{"search_alert.firing", "search_alert.resolved"}) })
	b.check("an alert that is over")
	b.blameless("an alert")

	b.open("/console/errors")
	b.leave("a", "Alerts", "Alerts on errors")
	b.leave("a", "Set an alert", "Set an alert on errors")
	b.fill("Name", "New faults")
	b.fill("New after so many", "1")
	b.fill("Environments", "production")
	b.check("setting an alert on errors")
	b.leave("button", "Set alert", "New faults")
	b.awaitText("The alert is set.")
	in.send(t, w.key.Key, entry{Level: "error", Message: "no refund", Environment: "production", Error: &failure{Type: "RefundFailed", Message: "no refund",
		Frames: []string{"at refund (/srv/shop/src/refund.js:3:9)"}}})
	testenv.Eventually(t, func() error {
		return hasTypes(hook, []string{"search_alert.firing", "search_alert.resolved", "error_alert.fired"})
	})
	testenv.Eventually(t, func() error { return hasMail(office.Taken(), w.email, "New faults: RefundFailed") })
	onErrors := ask[string](b, `location.pathname`)
	b.open(onErrors)
	b.awaitText("RefundFailed: no refund")
	b.leave("button", "Send a test", "New faults")
	b.awaitText("a test was sent")
	b.leave("button", "Mute", "New faults")
	b.awaitText("The alert is muted until then.")
	b.check("a muted alert on errors")
	b.open("/console/errors/alerts")
	b.awaitText("muted")
	b.check("alerts on errors")
	b.open("/console/errors/" + w.group)
	b.note("@bob Field: is this yours?", ask[string](b, `document.querySelector("h1").innerText`))
	testenv.Eventually(t, func() error {
		return hasMail(office.Taken(), "field@acme.example", "Ada Owner mentions you: TypeError")
	})
	b.blameless("an alert on errors")
}

// untilShown reloads a page until the alert on it has a state.
func (b *tab) untilShown(path, state string) {
	b.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		b.open(path)
		if ask[bool](b, fmt.Sprintf(`document.querySelector("dd .badge")?.textContent === %q`, state)) {
			return
		}
	}
	b.t.Fatalf("the alert is not %s:\n%s", state, b.describe())
}
