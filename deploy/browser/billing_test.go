//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/mailtest"
	"github.com/weirlog/weir/tenants/webhooktest"
)

// Billing on a test clock, as the payer sees it: used, exhausted and
// why, a larger plan, restored, a grant, a budget, the period's end,
// its statement as a page and as CSV, an adjustment. Each step came to
// a webhook, signed, and by mail to the owner, and all of it is marked
// as a test.
func TestBillingsStory(t *testing.T) {
	t.Setenv("WEIR_TIER_INDIE_BYTES", "2000")
	office, hook := mailtest.OpenPlain(t), webhooktest.New(t, 0)
	t.Setenv("WEIR_WEBHOOK_CA_FILE", hook.Authority)
	t.Setenv("WEIR_WEBHOOK_NETWORKS", "127.0.0.0/8")
	t.Setenv("WEIR_SMTP_URL", "smtp://"+office.Address)
	t.Setenv("WEIR_SMTP_FROM", "Weir <weir@example.com>")
	in := newInstallation(t)
	created, err := in.api.CreateOrganization(t.Context(), in.token, "Acme", "indie")
	must(t, err)
	in.addMember(t, created.ID, "Ada Owner", "owner", "ada@acme.example", ownerPassword)
	project, err := in.api.CreateProject(t.Context(), in.token, created.ID, "Checkout")
	must(t, err)
	books := "/organizations/" + created.ID
	told := []string{"quota.threshold_reached", "quota.exhausted", "quota.restored", "statement.ready"}
	made := in.bill(t, "POST", books+"/webhooks", map[string]any{"url": hook.URL, "events": told})
	hook.Trust(made["secret"].(string))
	in.awaitBooks(t, books)
	in.bill(t, "PUT", books+"/test-clock", nil)
	use := func(bytes int) {
		in.bill(t, "POST", books+"/test-clock/use", map[string]any{"bytes": bytes, "project": project.ID})
	}
	use(1500)

	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn("ada@acme.example", ownerPassword)
	b.leave("a", "Usage", "Usage")
	b.awaitText("This is a test organization")
	b.awaitText("(75%)")
	use(700)
	b.open("/console/usage")
	b.awaitText("A request needed more than the 500 B that are left")
	b.check("usage of a test")
	b.leave("a", "why requests were refused", "Why requests were refused")
	b.awaitText("It needed 700 B, and 500 B of 1.9 KiB were left")
	in.bill(t, "PUT", books+"/subscription", map[string]any{"tier": "indie", "quota": 100_000})
	in.bill(t, "POST", books+"/grants", map[string]any{"amount": 4096, "reason": "for your patience"})
	b.open("/console/usage")
	b.awaitText("for your patience")
	if b.shows("exhausted") {
		t.Errorf("the larger plan restores nothing:\n%s", b.describe())
	}
	b.leave("a", "Budgets", "Budgets")
	b.choose("Budget of", "the project Checkout")
	b.fill("Of each period", "1")
	b.choose("Unit", "KiB")
	b.leave("button", "Set budget", "Budgets")
	b.awaitText("exhausted")
	b.check("a budget that is exhausted")

	end := in.bill(t, "GET", books+"/subscription", nil)["period"].(map[string]any)["end"]
	in.bill(t, "PUT", books+"/test-clock", map[string]any{"at": end})
	b.open("/console/usage/statements")
	b.leave("a", "Statement 1", "Statement 1")
	b.awaitText("This statement is of a test")
	b.awaitText("Checkout")
	b.check("statement")
	if csv := ask[string](b, `fetch(location.pathname + "/csv").then((r) => r.text())`); !strings.Contains(csv, "1,test,") || !strings.Contains(csv, ",1,1,1500") {
		t.Errorf("as CSV:\n%s", csv)
	}
	in.bill(t, "POST", books+"/adjustments", map[string]any{"amount": 250, "reason": "sent twice"})
	b.open("/console/usage")
	b.awaitText("Adjustment")
	testenv.Eventually(t, waitTimeout, func() error { return hasTypes(hook, told) })
	for _, subject := range []string{"has used 50% of its quota", "has used up its quota", "statement"} {
		testenv.Eventually(t, waitTimeout, func() error { return hasMail(office.Taken(), "ada@acme.example", subject) })
	}
	b.open("/console/settings/webhooks/" + made["id"].(string))
	for _, fact := range told {
		b.await(fmt.Sprintf(`document.querySelector("main table").innerText.includes(%q)`, fact))
	}
	b.blameless("billing's story")
}

// hasMail reports whether a recipient has a mail of a test whose
// subject contains a text.
func hasMail(mails []string, to, subject string) error {
	for _, mail := range mails {
		head, _, _ := strings.Cut(mail, "\r\n\r\n")
		if strings.Contains(head, to) && strings.Contains(head, subject) && strings.Contains(mail, "test") {
			return nil
		}
	}
	return fmt.Errorf("no mail to %s has the subject %q: %q", to, subject, mails)
}

// awaitBooks waits until the ledger knows an organization.
func (in installation) awaitBooks(t *testing.T, books string) {
	t.Helper()
	testenv.Eventually(t, waitTimeout, func() error {
		answer, err := in.asOperator(t, "GET", books+"/subscription", nil)
		if err == nil && answer.Status != 200 {
			err = fmt.Errorf("there are no books yet: %d %s", answer.Status, answer.Body)
		}
		return err
	})
}

// bill calls the billing API as the operator, and returns the answer.
func (in installation) bill(t *testing.T, method, path string, body map[string]any) (made map[string]any) {
	t.Helper()
	answer, err := in.asOperator(t, method, path, body)
	must(t, err)
	must(t, json.Unmarshal(answer.Body, &made))
	if answer.Status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	return made
}

func (in installation) asOperator(t *testing.T, method, path string, body map[string]any) (client.Answer, error) {
	t.Helper()
	request := client.Request{Method: method, Path: path, Header: map[string]string{"Authorization": "Bearer " + in.token, "Content-Type": "application/json"}}
	if method != "GET" {
		if body == nil {
			body = map[string]any{}
		}
		text, err := json.Marshal(body)
		must(t, err)
		request.Body = text
	}
	return in.api.Call(t.Context(), request)
}

// hasTypes returns which of some types of message is missing, or
// what was wrong.
func hasTypes(hook *webhooktest.Receiver, want []string) error {
	types, _, err := hook.Types()
	came := slices.Collect(maps.Values(types))
	for _, kind := range want {
		if err == nil && !slices.Contains(came, kind) {
			err = fmt.Errorf("no %s has come, but %v", kind, came)
		}
	}
	return err
}
