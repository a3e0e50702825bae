//go:build browser

package browser

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

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
	b.leave("button", "Begin", "Logs")
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
	b.leave("button", "Join", "Logs")
}

// follow opens a link that carries a code to the page called title. The code
// goes into the form, and stays neither in the address bar nor in the history,
// where the browser's next user would find it.
func (b *tab) follow(link, title string) {
	b.t.Helper()
	where, err := url.Parse(link)
	must(b.t, err)
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
