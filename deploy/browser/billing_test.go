//go:build browser

package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

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
	organization, project := in.acme(t)
	books := "/organizations/" + organization
	told := []string{"quota.threshold_reached", "quota.exhausted", "quota.restored", "statement.ready"}
	made := in.bill(t, "POST", books+"/webhooks", map[string]any{"url": hook.URL, "events": told})
	hook.Trust(made["secret"].(string))
	in.awaitBooks(t, books)
	in.bill(t, "PUT", books+"/test-clock", nil)
	use := func(bytes int) {
		in.bill(t, "POST", books+"/test-clock/use", map[string]any{"bytes": bytes, "project": project})
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
	b.leave("a", "which requests were refused", "Why requests were refused")
	b.awaitText("It needed 700 B, but only 500 B of 1.9 KiB were left")
	in.bill(t, "PUT", books+"/subscription", map[string]any{"tier": "indie", "quota": 100_000})
	in.bill(t, "POST", books+"/grants", map[string]any{"amount": 4096, "reason": "for your patience"})
	b.open("/console/usage")
	b.awaitText("for your patience")
	if b.shows("exhausted") {
		t.Errorf("the larger plan restores nothing:\n%s", b.describe())
	}
	b.leave("a", "Budgets", "Budgets")
	b.choose("Budget for", "Project: Checkout")
	b.fill("Per period", "1 KiB")
	b.leave("button", "Set budget", "Budgets")
	b.awaitText("exhausted")
	b.check("a budget that is exhausted")

	end := in.bill(t, "GET", books+"/subscription", nil)["period"].(map[string]any)["end"]
	in.bill(t, "PUT", books+"/test-clock", map[string]any{"at": end})
	b.open("/console/usage/statements")
	b.leave("a", "Statement 1", "Statement 1")
	b.awaitText("This statement is for a test")
	b.awaitText("Checkout")
	b.check("statement")
	if csv := ask[string](b, `fetch(location.pathname + "/csv").then((r) => r.text())`); !strings.Contains(csv, "1,test,") || !strings.Contains(csv, ",1,1,1500") {
		t.Errorf("as CSV:\n%s", csv)
	}
	in.bill(t, "POST", books+"/adjustments", map[string]any{"amount": 250, "reason": "sent twice"})
	b.open("/console/usage")
	b.awaitText("Adjustment")
	testenv.Eventually(t, func() error { return hasTypes(hook, told) })
	for _, subject := range []string{"has used 50% of its quota", "has used up its quota", "statement"} {
		testenv.Eventually(t, func() error { return hasMail(office.Taken(), "ada@acme.example", "[Test]", subject) })
	}
	b.open("/console/settings/webhooks/" + made["id"].(string))
	for _, fact := range told {
		b.await(fmt.Sprintf(`document.querySelector("main table").innerText.includes(%q)`, fact))
	}
	b.blameless("billing's story")
}

// hasMail reports whether a recipient has a mail whose subject
// contains some texts.
func hasMail(mails []string, to string, subject ...string) error {
	for _, mail := range mails {
		head, _, _ := strings.Cut(mail, "\r\n\r\n")
		if !slices.ContainsFunc(append(subject, to), func(text string) bool { return !strings.Contains(head, text) }) {
			return nil
		}
	}
	return fmt.Errorf("no mail to %s has the subject %q: %q", to, subject, mails)
}

// awaitBooks waits until the ledger knows an organization.
func (in installation) awaitBooks(t *testing.T, books string) {
	t.Helper()
	testenv.Eventually(t, func() error {
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
	testenv.Must(t, err)
	testenv.Must(t, json.Unmarshal(answer.Body, &made))
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
		testenv.Must(t, err)
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

// By keyboard only, a refused customer finds out who used what, which
// request exhausted the allowance, and what ends that.
func TestUsageOfAnExhaustedPeriod(t *testing.T) {
	t.Setenv("WEIR_TIER_INDIE_BYTES", "2000")
	t.Setenv("WEIR_INGEST_OUTCOMES_INTERVAL", "100ms")
	in := newInstallation(t)
	_, project := in.acme(t)
	key, err := in.api.CreateAPIKey(t.Context(), in.token, project, "prod", "pods in Frankfurt")
	testenv.Must(t, err)
	in.send(t, key.Key, entry{Level: "info", Message: "order 4711 was paid"})
	_, err = in.api.Post(t.Context(), key.Key, client.Batch{Body: []byte(
		`{"logs":[{"timestamp":"2026-11-20T10:00:00Z","level":"info","message":"` + strings.Repeat("x", 3000) + `"}]}`)})
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Code != "quota_exceeded" {
		t.Fatalf("3,000 bytes of 2,000: %v", err)
	}

	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn("ada@acme.example", ownerPassword)
	b.repeat("A request needed more", func() { b.open("/console/usage") })
	b.inspect("exhausted usage", "/console/usage")
	b.await(`document.querySelectorAll("svg.chart rect.series-0").length === 1`)
	b.awaitText("Checkout")
	b.repeat("over the quota", func() {
		b.open("/console/usage")
		b.leave("a", "By outcome", "Usage")
	})
	b.press("summary", "Show as a table")
	b.leave("a", time.Now().UTC().Format(time.DateOnly), "Usage")
	b.awaitText("Usage by hour on")
	b.check("usage by hour")
	b.leave("a", "Refused requests", "Why requests were refused")
	b.awaitText("It needed")
	b.press("summary", "Who had used the quota by then")
	b.awaitText("Checkout")
	b.check("why requests were refused")
	b.open("/console/usage")
	b.leave("a", "Statements", "Statements")
	b.check("no statements")
	b.open("/console/usage")
	b.leave("a", "Plan", "Plan")
	b.leave("button", "Compare", "Plan")
	b.awaitText("Your past periods with this plan")
	b.check("preview of a plan")
	b.blameless("usage")
}

// By keyboard only, the operator finds out which organizations exist
// and in what state they are.
func TestOrganizations(t *testing.T) {
	g, host := newGround(t), ""
	t.Run("founded", func(t *testing.T) {
		in := g.start(t)
		host = in.addOwner(t, "Host", "Olga Operator", "olga@host.example", ownerPassword)
		in.addOwner(t, "Acme", "Ada Owner", "ada@acme.example", ownerPassword)
	})
	t.Setenv("WEIR_OPERATING_ORGANIZATION", host)
	in := g.start(t)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn("olga@host.example", ownerPassword)
	b.leave("a", "Usage", "Usage")
	b.leave("a", "All organizations", "All organizations")
	b.awaitText(host)
	b.await(`document.querySelectorAll("tbody tr").length === 2`)
	b.check("all organizations")
	b.fill("Id contains", host)
	b.leave("button", "Search", "All organizations")
	b.await(`document.querySelectorAll("tbody tr").length === 1`)
	b.leave("a", "scale: change the plan of Host", "Plan")
	b.fill("Quota per period", "1.5 KiB")
	b.fill("Periods begin on day", "31")
	b.leave("button", "Compare", "Plan")
	b.awaitText("periods would begin on day 31 of the month")
	b.check("a plan of one's own")
	b.leave("button", "Change to scale", "Plan")
	b.awaitText("The plan is changed")
	b.awaitText("from the next one on day 31")
	b.check("a plan that is decided")
	b.open("/console/usage/organizations")
	b.choose("State", "suspended")
	b.leave("button", "Search", "All organizations")
	b.awaitText("No organization matches")
	b.check("no organizations")
	b.blameless("all organizations")
}

// ownerLink is the link that the installation printed for the first person.
func (in installation) ownerLink(t *testing.T) string {
	t.Helper()
	link := regexp.MustCompile(`https://\S+/console/welcome#\S+`).FindString(in.printed.String())
	if !strings.HasPrefix(link, in.origin) {
		t.Fatalf("no link to %s is printed: %s", in.origin, in.printed)
	}
	return link
}

func codeOf(link string) string {
	_, code, _ := strings.Cut(link, "#")
	return code
}

// Passwords of the story.
const (
	ownerPassword  = "violet kettle drums quietly"
	viewerPassword = "seven otters fold maps"
)

// found makes an organization, with the link for its first owner.
func (b *tab) found(link string) {
	b.t.Helper()
	b.follow(link, "Welcome to Weir")
	b.fill("Organization", "Acme")
	b.fill("Your name", "Ada Owner")
	b.fill("E-mail", "ada@acme.example")
	b.fill("Password", ownerPassword)
	b.enter("Begin")
}

// invite invites somebody, and returns the link that the page
// shows this once, as copied from there.
func (b *tab) invite(email, role string) string {
	b.t.Helper()
	b.leave("a", "Members", "Members")
	b.leave("a", "Invite somebody", "Invite somebody")
	b.fill("E-mail", email)
	b.choose("Role", role)
	b.leave("button", "Invite", "Pass on the invitation")
	b.press("button", "Copy link")
	b.awaitText("Copied")
	link := b.clipboard()
	b.leave("a", "I have passed it on", "Invitations")
	b.awaitText(email)
	if b.shows(codeOf(link)) {
		b.t.Error("the code of the invitation is shown a second time")
	}
	return link
}

// join becomes a member by an invitation.
func (b *tab) join(link, name, email string) {
	b.t.Helper()
	b.follow(link, "Join your organization")
	b.fill("E-mail", email)
	b.fill("Your name", name)
	b.fill("Password", viewerPassword)
	b.enter("Join")
}

// follow opens a link that carries a code to the page called title. The code
// goes into the form, and stays neither in the address bar nor in the history,
// where the browser's next user would find it.
func (b *tab) follow(link, title string) {
	b.t.Helper()
	where, err := url.Parse(link)
	testenv.Must(b.t, err)
	if len(where.Fragment) < 48 {
		b.t.Fatalf("a link without a code: %s", link)
	}
	b.do(chromedp.Navigate(link))
	b.awaitPage(title)
	b.await(fmt.Sprintf(`document.querySelector("input[name=code]").value === %q`, where.Fragment))
	history := call(b, page.GetNavigationHistory, cdp.Empty{})
	for _, entry := range history.Entries {
		if strings.Contains(entry.URL, where.Fragment) {
			b.t.Errorf("the code stays in the history: %s", entry.URL)
		}
	}
	if at := ask[string](b, "location.href"); at != b.origin+where.Path {
		b.t.Errorf("the address bar shows %s", at)
	}
}
