package people_test

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

const mailsPath = "/console/settings/account/mails"

var links = mail.NewLinks("https://weir.example", []byte("key"))

// without are the kinds of mail that a member
// of org_a, even a former one, does not get.
func (r room) without(t *testing.T, id string) []tenants.MailKind {
	t.Helper()
	found, err := people.NewStore(r.Members.Work.Views).MemberEver(t.Context(), "org_a", id)
	testenv.Must(t, err)
	return found.WithoutMails
}

// mails sends a member of org_a's request to the page of their mail.
func (r room) mails(t *testing.T, member string, role tenants.Role, method string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	as := tenantstest.SignedIn("a", role)
	as.Member = member
	return tenantstest.Call(t, r.pages, as, method, mailsPath, "", form)
}

// follow sends a request without a session to a link.
func (r room) follow(t *testing.T, method, link string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return tenantstest.Call(t, r.pages, identity.Principal{}, method, strings.TrimPrefix(link, "https://weir.example"), "", form)
}

// Members choose which mail they get, of the kinds
// for their role; what others get stays as it was.
func TestChooseMails(t *testing.T) {
	r := open(t)
	bill := r.add(t, "org_a", "bill@example.com", tenants.Billing)
	if got := r.mails(t, bill, tenants.Billing, "POST", url.Values{"mails": {"exhausted"}}); got.Code != 303 {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	if got := r.without(t, bill); !slices.Equal(got, []tenants.MailKind{tenants.ThresholdMail, tenants.StatementMail}) {
		t.Errorf("they go without %q", got)
	}
	if got := r.mails(t, bill, tenants.Billing, "POST", url.Values{"mails": {"news"}}); got.Code != 422 || !strings.Contains(got.Body.String(), `id="fault-mails"`) {
		t.Errorf("a kind that is none: %d %s", got.Code, got.Body)
	}
	dev := r.add(t, "org_a", "dev@example.com", tenants.Developer)
	page := r.mails(t, dev, tenants.Developer, "GET", nil)
	if boxes := strings.Count(page.Body.String(), `name="mails"`); page.Code != 200 || boxes != 1 || !strings.Contains(page.Body.String(), `value="mention" checked`) {
		t.Errorf("a developer has %d kinds: %d %s", boxes, page.Code, page.Body)
	}
	if got := r.mails(t, dev, tenants.Developer, "POST", url.Values{}); got.Code != 303 || !slices.Equal(r.without(t, dev), []tenants.MailKind{tenants.MentionMail}) {
		t.Errorf("%d, and they go without %q", got.Code, r.without(t, dev))
	}
	if status, answer := r.call(t, "org_a", "POST", "/v1/members/"+bill+"/remove", ""); status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	if got := r.without(t, bill); len(got) > 0 {
		t.Errorf("the table keeps %q of a former member", got)
	}
}

// The page shows a box for each kind, checked where it is sent.
func TestMailsPage(t *testing.T) {
	r := open(t)
	got := r.page(t, tenants.Owner, "GET", mailsPath, nil)
	for _, kind := range tenants.MailKinds() {
		if box := `name="mails" value="` + string(kind) + `" checked`; got.Code != 200 || !strings.Contains(got.Body.String(), box) {
			t.Errorf("%d, and no %s: %s", got.Code, box, got.Body)
		}
	}
}

// A link ends its kind of mail when it is submitted, not
// when it is opened, and as often as that is repeated.
func TestUnsubscribe(t *testing.T) {
	r := open(t)
	bill := r.add(t, "org_a", "bill@example.com", tenants.Billing)
	link := links.To(mail.Mailing{Organization: "org_a", Member: bill, Kind: tenants.ThresholdMail})
	got := r.follow(t, "GET", link, nil)
	action := `action="` + strings.ReplaceAll(strings.TrimPrefix(link, "https://weir.example"), "&", "&amp;") + `"`
	if got.Code != 200 || !strings.Contains(got.Body.String(), action) || len(r.without(t, bill)) > 0 {
		t.Fatalf("looked at: %d %q %s", got.Code, r.without(t, bill), got.Body)
	}
	for range 2 {
		got = r.follow(t, "POST", link, url.Values{"List-Unsubscribe": {"One-Click"}})
		if got.Code != 200 || !strings.Contains(got.Body.String(), "no longer get mail") || !slices.Equal(r.without(t, bill), []tenants.MailKind{tenants.ThresholdMail}) {
			t.Errorf("sent: %d %q %s", got.Code, r.without(t, bill), got.Body)
		}
	}
}

// Links of removed members change nothing and
// show nothing else; forged links are refused.
func TestUnsubscribeNobody(t *testing.T) {
	r := open(t)
	for member, organization := range map[string]string{"mem_gone_a": "org_a", "mem_b": "org_a", "mem_none": "org_none"} {
		link := links.To(mail.Mailing{Organization: organization, Member: member, Kind: tenants.ThresholdMail})
		if got := r.follow(t, "POST", link, nil); got.Code != 200 {
			t.Errorf("%s of %s: %d %s", member, organization, got.Code, got.Body)
		}
	}
	for _, method := range []string{"GET", "POST"} {
		if got := r.follow(t, method, mail.UnsubscribePath+"?organization=org_a&member=mem_a&kind=threshold", nil); got.Code != 404 || len(r.without(t, "mem_a")) > 0 {
			t.Errorf("%s without a signature: %d, %q", method, got.Code, r.without(t, "mem_a"))
		}
	}
}

// A network that opens too many links waits.
func TestLinksAreCounted(t *testing.T) {
	r := open(t)
	router := chi.NewRouter()
	r.pages(router)
	same := func(outer chi.Router) { outer.Mount("/", router) }
	for i := range 2000 {
		if got := tenantstest.Call(t, same, identity.Principal{}, "POST", mail.UnsubscribePath, "", url.Values{}); got.Code == 429 {
			return
		} else if got.Code != 404 {
			t.Fatalf("request %d: %d", i, got.Code)
		}
	}
	t.Error("2000 requests of one network are answered")
}
