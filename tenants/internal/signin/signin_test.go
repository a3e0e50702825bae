package signin_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

const secret = "seven green ladders hum"

// member is everybody's member.
type member tenants.Member

func (m member) Member(_ context.Context, as pg.Organization, id string) (tenants.Member, error) {
	if id != m.ID || as != tenants.Installation && string(as) != m.Organization {
		return tenants.Member{}, tenants.ErrNotFound
	}
	return tenants.Member(m), nil
}

func (m member) MemberEver(ctx context.Context, as pg.Organization, id string) (tenants.Member, error) {
	return m.Member(ctx, as, id)
}

func (m member) MemberByEmail(ctx context.Context, email string) (tenants.Member, error) {
	if email != m.Email {
		return tenants.Member{}, tenants.ErrNotFound
	}
	return m.Member(ctx, tenants.Installation, m.ID)
}

func (m member) MembersByEmail(ctx context.Context, emails []string) ([]tenants.Member, error) {
	found, err := m.MemberByEmail(ctx, emails[0])
	return []tenants.Member{found}, err
}

func (m member) MemberByIdentity(context.Context, tenants.ProviderIdentity) (tenants.Member, error) {
	return tenants.Member{}, tenants.ErrNotFound
}

// A room is signing in on its own schema.
type room struct {
	work *unitofwork.Writer
	signin.Services
}

func open(t *testing.T) room { t.Helper(); return openAs(t, tenants.Admin) }

// openAs is open where the member has a role.
func openAs(t *testing.T, role tenants.Role) room {
	t.Helper()
	pool := tenantstest.Open(t)
	work := tenantstest.NewWriter(pool)
	hasher, err := password.NewHasher(password.Cost{Memory: 8, Passes: 1}, rand.Reader)
	testenv.Must(t, err)
	hash, err := hasher.Hash(t.Context(), password.Known("org_a"), secret)
	testenv.Must(t, err)
	party, err := passkey.New("https://weir.example")
	testenv.Must(t, err)
	ada := member{ID: "mem_a", Organization: "org_a", Email: "a@example.com", Name: "Ada", Role: role, PasswordHash: hash}
	return room{work, signin.New(signin.Config{
		Work: work, Members: func(*query.Reader) signin.Members { return ada },
		Organizations: func(in *query.Reader) signin.Organizations { return registry.NewStore(in) },
		Passwords:     hasher, Challenges: challenge.New(pool, tenantstest.Now, rand.Reader), RelyingParty: party,
		Dropped: func() {}, Logger: slog.New(slog.DiscardHandler),
	})}
}

func (r room) signIn(t *testing.T) tenants.SignInResult {
	t.Helper()
	entry, err := r.Passwords.SignIn(t.Context(), unitofwork.Request{Client: "curl/8.5.0"}, "A@example.com", secret)
	testenv.Must(t, err)
	return entry
}

func (r room) api(admin chi.Router) {
	tenantstest.Route(admin, signin.NewAPI(tenantstest.API(), r.Sessions).Operations())
}

// page sends a request of org_a's member
// to the pages, from the session ses_a.
func (r room) page(t *testing.T, method, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	mount := signin.NewPages(tenantstest.Pages(), r.Services, prometheus.NewRegistry()).Mount
	return tenantstest.Call(t, mount, tenantstest.SignedIn("a", tenants.Admin), method, "/console/settings/account"+path, "", form)
}

// The holder of the password signs in, in a device
// that is known from then on; nobody else does.
func TestSignIn(t *testing.T) {
	r := open(t)
	entry := r.signIn(t)
	if entry.Session.Member != "mem_a" || entry.Session.Method.OrPassword() != tenants.ByPassword || len(entry.Devices) != 1 {
		t.Errorf("signed in: %+v", entry)
	}
	for email, shown := range map[string]tenants.Password{"a@example.com": "another password", "b@example.com": secret, "nobody": secret} {
		if _, err := r.Passwords.SignIn(t.Context(), unitofwork.Request{}, email, shown); !errors.Is(err, signin.ErrSignIn) {
			t.Errorf("%s with %q: %v", email, shown.Reveal(), err)
		}
	}
}

// Where an organization has switched passwords off, the right one is refused.
func TestPasswordsOff(t *testing.T) {
	r := open(t)
	u, err := r.work.Begin(t.Context(), "org_a", unitofwork.BySystem("test"))
	testenv.Must(t, err)
	defer u.Rollback(t.Context())
	_, err = unitofwork.Change(t.Context(), u, unitofwork.Stream("org_a", "security-policy", "org_a"), func(tenants.SecurityPolicy) ([]tenants.Event, error) {
		return []tenants.Event{tenants.SecurityPolicySet{Organization: "org_a", LeakedKeys: tenants.NotifyLeaked, PlainHTTPKeys: tenants.FlagPlainHTTP,
			PasswordsOff: true, At: tenantstest.Now()}}, nil
	})
	testenv.Must(t, err)
	testenv.Must(t, u.Commit(t.Context()))
	if _, err := r.Passwords.SignIn(t.Context(), unitofwork.Request{}, "a@example.com", secret); !errors.Is(err, signin.ErrPasswordsOff) {
		t.Errorf("signing in: %v", err)
	}
	if got := r.page(t, "GET", "/password", nil); got.Code != 409 || !strings.Contains(got.Body.String(), "switched passwords off") {
		t.Errorf("the page to change it: %d %s", got.Code, got.Body)
	}
}

// The API lists and ends the sessions of an
// organization's members, and finds none of others.
func TestSessionsAPI(t *testing.T) {
	r := open(t)
	entry := r.signIn(t)
	r.signIn(t)
	for name, c := range map[string]struct {
		organization, method, path string
		status                     int
		want                       string
	}{
		"a list":           {"org_a", "GET", "/v1/sessions?member=mem_a", 200, entry.Session.ID},
		"a foreign member": {"org_b", "GET", "/v1/sessions?member=mem_a", 404, "mem_a"},
		"a foreign one":    {"org_b", "POST", "/v1/sessions/" + entry.Session.ID + "/revoke", 404, entry.Session.ID},
		"a page":           {"org_a", "GET", "/v1/sessions?member=mem_a&limit=1", 200, `"next_cursor":"`},
		"nobody's":         {"org_a", "GET", "/v1/sessions", 400, "member"},
		"no id":            {"org_a", "POST", "/v1/sessions/%20/revoke", 404, "session"},
	} {
		got := tenantstest.Call(t, r.api, tenantstest.Token(c.organization), c.method, c.path, "", nil)
		if got.Code != c.status || !strings.Contains(got.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want %d with %s", name, got.Code, got.Body, c.status, c.want)
		}
	}
	got := tenantstest.Call(t, r.api, tenantstest.Token("org_a"), "POST", "/v1/sessions/"+entry.Session.ID+"/revoke", `{"reason":"lost laptop"}`, nil)
	if got.Code != 200 || !strings.Contains(got.Body.String(), "lost laptop") {
		t.Errorf("revoked: %d %s", got.Code, got.Body)
	}
	if device, err := r.Sessions.Recognize(t.Context(), "a@example.com", entry.Devices); err != nil || device.Known() {
		t.Errorf("its browser is known still: %+v, %v", device, err)
	}
	owners := openAs(t, tenants.Owner)
	for method, path := range map[string]string{"GET": "?member=mem_a", "POST": "/" + owners.signIn(t).Session.ID + "/revoke"} {
		tenantstest.Want(t, method, tenantstest.Call(t, owners.api, tenantstest.Token("org_a"), method, "/v1/sessions"+path, "", nil), 403, "concerns owners")
	}
}

// The account shows its reader's sessions
// and passkeys, and ends the other sessions.
func TestAccount(t *testing.T) {
	r := open(t)
	r.signIn(t)
	if got := r.page(t, "GET", "", nil); got.Code != 200 || !strings.Contains(got.Body.String(), "curl") || !strings.Contains(got.Body.String(), "Laptop") {
		t.Errorf("the account: %d %s", got.Code, got.Body)
	}
	if got := r.page(t, "POST", "/sessions/ses_b/end", url.Values{}); got.Code != 404 {
		t.Errorf("a foreign session: %d %s", got.Code, got.Body)
	}
	if got := r.page(t, "POST", "/sessions/end-others", url.Values{}); got.Code != 303 {
		t.Errorf("all others: %d %s", got.Code, got.Body)
	}
	if got := r.page(t, "GET", "", nil); strings.Contains(got.Body.String(), "curl") {
		t.Errorf("the account after that: %s", got.Body)
	}
}

// Passkeys are one's own only, and answers need a ticket.
func TestPasskeys(t *testing.T) {
	r := open(t)
	if got := r.page(t, "POST", "/passkeys/options", url.Values{}); got.Code != 200 || !strings.Contains(got.Body.String(), "publicKey") ||
		!strings.Contains(got.Header().Get("Set-Cookie"), "__Host-weir-challenge=weirtkt_") {
		t.Errorf("asked: %d %s", got.Code, got.Body)
	}
	if got := r.page(t, "POST", "/passkeys", url.Values{"name": {"Phone"}, "credential": {"{}"}}); got.Code != 422 {
		t.Errorf("without a ticket: %d %s", got.Code, got.Body)
	}
	for path, want := range map[string]int{"/passkeys/pky_a/remove": 200, "/passkeys/pky_b/remove": 404} {
		if got := r.page(t, "GET", path, nil); got.Code != want {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
}
