package people_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A room is the room of people on its own schema, with its calls of sign-in.
type room struct {
	people.Services
	asked *signIns
}

func open(t *testing.T) room {
	t.Helper()
	return openOn(t, tenantstest.Open(t))
}

// openOn is open on a given schema.
func openOn(t *testing.T, pool *pgxpool.Pool) room {
	t.Helper()
	passwords, err := password.NewHasher(password.ForTests(), rand.Reader)
	testenv.Must(t, err)
	work, asked := tenantstest.NewWriter(pool), &signIns{}
	organizations := registry.NewService(work, func(string) tenants.Tier { return "" })
	members := people.NewService(people.Config{
		Work: work, Organizations: organizations, SignIns: asked, Passwords: passwords, SignInMethods: people.SignInMethods{Passkeys: true},
		Registry: func(in *query.Reader) people.Registry { return registry.NewStore(in) },
	})
	return room{people.Services{
		Members: members, Invitations: people.NewInvitations(work, organizations), Codes: people.NewCodes(members), Mailings: people.NewMailings(work),
	}, asked}
}

// signIns records its calls.
type signIns struct{ asked []string }

func (s *signIns) ask(format string, a ...any) error {
	s.asked = append(s.asked, fmt.Sprintf(format, a...))
	return nil
}

func (s *signIns) StartSession(_ context.Context, _ *unitofwork.Unit, m tenants.Member, method tenants.SignInMethod) (tenants.SignInResult, error) {
	return tenants.SignInResult{Session: tenants.Session{ID: "ses_1", Method: method}}, s.ask("let in %s as %s", m.Email, m.Role)
}

func (s *signIns) ChangeRoles(_ context.Context, _ *unitofwork.Unit, m tenants.Member, role tenants.Role, _ time.Time) error {
	return s.ask("%s is %s", m.ID, role)
}

func (s *signIns) EndSessions(_ context.Context, _ *unitofwork.Unit, m tenants.Member, reason string) error {
	return s.ask("end %s: %s", m.ID, reason)
}

func (s *signIns) RemovePasskeys(_ context.Context, _ *unitofwork.Unit, m tenants.Member) error {
	return s.ask("no passkeys of %s", m.ID)
}

// An entrance allows one attempt under each name, and redirects who signs in.
type entrance struct{ tried map[string]bool }

func (e entrance) Limit(_ *http.Request, name string) time.Duration {
	if e.tried[name] {
		return time.Minute
	}
	e.tried[name] = true
	return 0
}

func (entrance) Anonymous(*http.Request) unitofwork.Request { return unitofwork.Request{} }

func (entrance) CompleteSignIn(w http.ResponseWriter, r *http.Request, _ tenants.SignInResult) error {
	http.Redirect(w, r, "/in", http.StatusSeeOther)
	return nil
}

func (entrance) CompleteSignInByCode(w http.ResponseWriter, r *http.Request, _ tenants.SignInResult) error {
	http.Redirect(w, r, "/in/by-code", http.StatusSeeOther)
	return nil
}

func (r room) api(admin chi.Router) {
	tenantstest.Route(admin, people.NewAPI(tenantstest.API(), r.Services).Operations())
}

func (r room) pages(router chi.Router) {
	kit := tenantstest.Pages()
	kit.Guard = identity.NewGuard(identity.GuardConfig{
		Credentials: identity.NewCredentials(tenantstest.Now), Clock: tenantstest.Now, Metrics: prometheus.NewRegistry(),
		Ready: func() error { return nil },
	})
	shown := people.NewPages(kit, r.Services, entrance{map[string]bool{}})
	shown.Mount(router)
	shown.MountCodes(router)
	shown.MountLinks(router, links)
}

// call sends a request of an organization's
// token, or the installation's, to the API.
func (r room) call(t *testing.T, organization, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	return tenantstest.CallAPI(t, r.api, organization, method, path, body)
}

// page sends a request of a member of org_a to the pages.
func (r room) page(t *testing.T, role tenants.Role, method, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return tenantstest.Call(t, r.pages, tenantstest.SignedIn("a", role), method, path, "", form)
}

// add adds a member to an organization, and returns their id.
func (r room) add(t *testing.T, organization, email string, role tenants.Role) string {
	t.Helper()
	status, added := r.call(t, "", "POST", "/v1/members",
		fmt.Sprintf(`{"organization":%q,"email":%q,"name":"Somebody","role":%q,"password":%q}`, organization, email, role, chosen))
	if status != 201 {
		t.Fatalf("add %s: %d %v", email, status, added)
	}
	return added["id"].(string)
}

// invite invites somebody to org_a, and returns the invitation's id and code.
func (r room) invite(t *testing.T, email string, role tenants.Role) (id, code string) {
	t.Helper()
	status, made := r.call(t, "org_a", "POST", "/v1/invitations", fmt.Sprintf(`{"organization":"org_a","email":%q,"role":%q}`, email, role))
	if status != 201 {
		t.Fatalf("invite %s: %d %v", email, status, made)
	}
	return made["id"].(string), made["code"].(string)
}

const (
	membersPath = "/console/settings/members"
	chosen      = "seven quiet herons wade"
)

// The API returns one's own, and nothing of others.
func TestAPI(t *testing.T) {
	r := open(t)
	dev := r.add(t, "org_a", "dev@example.com", tenants.Developer)
	owner := r.add(t, "org_a", "owner@example.com", tenants.Owner)
	_, made := r.call(t, "", "POST", "/v1/invitations", `{"organization":"org_a","email":"partner@example.com","role":"owner"}`)
	invited := made["id"].(string)
	revoked, _ := r.invite(t, "gone@example.com", tenants.Viewer)
	if status, answer := r.call(t, "org_a", "POST", "/v1/invitations/"+revoked+"/resend", ""); status != 200 || answer["code"] == nil {
		t.Errorf("an invitation is sent again: %d %v", status, answer)
	}
	if status, answer := r.call(t, "org_a", "POST", "/v1/invitations/"+revoked+"/revoke", ""); status != 200 || answer["state"] != "revoked" {
		t.Errorf("an invitation is revoked: %d %v", status, answer)
	}
	for name, c := range map[string]struct {
		as, method, path, body string
		status                 int
		says                   string
	}{
		"members":               {"org_a", "GET", "/v1/members", "", 200, `"mem_a"`},
		"foreign members":       {"org_a", "GET", "/v1/members?organization=org_b", "", 404, "org_b"},
		"a member by no one":    {"org_a", "POST", "/v1/members", `{"organization":"org_a","email":"x@example.com","name":"X","role":"viewer","password":"` + chosen + `"}`, 403, "forbidden"},
		"an address twice":      {"", "POST", "/v1/members", `{"organization":"org_a","email":"B@example.com","name":"X","role":"viewer","password":"` + chosen + `"}`, 409, "already signs in"},
		"a common password":     {"", "POST", "/v1/members", `{"organization":"org_a","email":"x@example.com","name":"X","role":"viewer","password":"password1234"}`, 400, "/password"},
		"a role that is none":   {"org_a", "PATCH", "/v1/members/mem_a", `{"role":"king"}`, 400, "/role"},
		"a foreign member":      {"org_a", "PATCH", "/v1/members/mem_b", `{"role":"viewer"}`, 404, "mem_b"},
		"an owner by a token":   {"org_a", "PATCH", "/v1/members/" + dev, `{"role":"owner"}`, 403, "forbidden"},
		"an owner's role":       {"org_a", "PATCH", "/v1/members/" + owner, `{"role":"viewer"}`, 403, "forbidden"},
		"an owner's removal":    {"org_a", "POST", "/v1/members/" + owner + "/remove", "", 403, "forbidden"},
		"an owner's reset":      {"org_a", "POST", "/v1/members/" + owner + "/reset-code", "", 403, "forbidden"},
		"an owner's invitation": {"org_a", "POST", "/v1/invitations/" + invited + "/resend", "", 403, "forbidden"},
		"its end":               {"org_a", "POST", "/v1/invitations/" + invited + "/revoke", "", 403, "forbidden"},
		"a foreign reset":       {"org_a", "POST", "/v1/members/mem_b/reset-code", "", 404, "mem_b"},
		"a foreign removal":     {"org_a", "POST", "/v1/members/mem_b/remove", "", 404, "mem_b"},
		"invitations":           {"org_a", "GET", "/v1/invitations", "", 200, `"inv_old_a"`},
		"a foreign invitation":  {"org_a", "POST", "/v1/invitations/inv_b/resend", "", 404, "inv_b"},
		"one for a member":      {"org_a", "POST", "/v1/invitations", `{"organization":"org_a","email":"a@example.com","role":"viewer"}`, 400, "/email"},
		"one that is settled":   {"org_a", "POST", "/v1/invitations/" + revoked + "/resend", "", 409, "accepted or revoked"},
		"one for another owner": {"org_a", "POST", "/v1/invitations", `{"organization":"org_a","email":"c@example.com","role":"owner"}`, 403, "forbidden"},
	} {
		status, answer := r.call(t, c.as, c.method, c.path, c.body)
		text, err := json.Marshal(answer)
		if err != nil || status != c.status || !strings.Contains(string(text), c.says) {
			t.Errorf("%s: %d %s, want %d with %s", name, status, text, c.status, c.says)
		}
	}
}

// A member's new role is in their sessions; a
// removed one is signed out; the only owner stays.
func TestSessionsFollowTheirMember(t *testing.T) {
	r := open(t)
	ada, bob := r.add(t, "org_a", "ada@example.com", tenants.Owner), r.add(t, "org_a", "bob@example.com", tenants.Developer)
	if status, changed := r.call(t, "org_a", "PATCH", "/v1/members/"+bob, `{"role":"viewer"}`); status != 200 || changed["role"] != "viewer" {
		t.Errorf("another role: %d %v", status, changed)
	}
	if status, removed := r.call(t, "org_a", "POST", "/v1/members/"+bob+"/remove", ""); status != 200 || removed["removed_at"] == nil {
		t.Errorf("removed: %d %v", status, removed)
	}
	for method, path := range map[string]string{"POST": "/remove", "PATCH": ""} {
		if status, answer := r.call(t, "", method, "/v1/members/"+ada+path, `{"role":"viewer"}`); status != 409 || answer["code"] != "last_owner" {
			t.Errorf("the only owner, %s: %d %v", method, status, answer)
		}
	}
	if want := []string{bob + " is viewer", "end " + bob + ": the member was removed"}; !slices.Equal(r.asked.asked, want) {
		t.Errorf("asked for %q, want %q", r.asked.asked, want)
	}
}

// Open invitations beyond a member's new role are revoked.
func TestInvitationsGoWithTheirMaker(t *testing.T) {
	r := open(t)
	eve := r.add(t, "org_a", "eve@example.com", tenants.Admin)
	request := unitofwork.Request{Caller: tenants.Caller{ID: eve, Organization: "org_a"}, Role: tenants.Admin}
	made, _, err := r.Invitations.Invite(t.Context(), request, people.NewInvitation{Organization: "org_a", Email: "c@example.com", Role: tenants.Admin})
	testenv.Must(t, err)
	other, _ := r.invite(t, "d@example.com", tenants.Admin)
	if status, _ := r.call(t, "org_a", "PATCH", "/v1/members/"+eve, `{"role":"viewer"}`); status != 200 {
		t.Fatalf("another role: %d", status)
	}
	states := map[any]any{}
	_, found := r.call(t, "org_a", "GET", "/v1/invitations", "")
	for _, item := range found["items"].([]any) {
		states[item.(map[string]any)["id"]] = item.(map[string]any)["state"]
	}
	if states[made.ID] != "revoked" || states[other] == "revoked" {
		t.Errorf("states of invitations: %v", states)
	}
}

// codeIn is the code in a page or an answer.
func codeIn(t *testing.T, prefix, text string) string {
	t.Helper()
	code := regexp.MustCompile(prefix + `_[0-9a-f]{48}`).FindString(text)
	if code == "" {
		t.Fatalf("no code of %s: %s", prefix, text)
	}
	return code
}

// An invited person joins with the code, once and with the invited address.
func TestInviteAndJoin(t *testing.T) {
	r := open(t)
	if got := r.page(t, tenants.Admin, "POST", membersPath+"/invitations", url.Values{"email": {"a@example.com"}, "role": {"viewer"}}); got.Code != 422 {
		t.Errorf("a member is invited: %d", got.Code)
	}
	form := url.Values{"email": {"bob@example.com"}, "role": {"developer"}, "form": {"form_1"}}
	shown := r.page(t, tenants.Admin, "POST", membersPath+"/invitations", form)
	code := codeIn(t, "weirinv", shown.Body.String())
	if shown.Code != 201 || !strings.Contains(shown.Body.String(), "https://weir.example/console/join#"+code) {
		t.Fatalf("invited: %d %s", shown.Code, shown.Body)
	}
	if got := r.page(t, tenants.Admin, "GET", membersPath+"/invitations", nil); !strings.Contains(got.Body.String(), "bob@example.com") || strings.Contains(got.Body.String(), code) {
		t.Errorf("the list: %s", got.Body)
	}
	join := func(code, email, password string) *httptest.ResponseRecorder {
		return r.page(t, "", "POST", "/console/join", url.Values{"code": {code}, "email": {email}, "name": {"Bob"}, "password": {password}})
	}
	for name, c := range map[string]struct{ field, code, email, password string }{
		"another address":   {"email", code, "eve@example.com", chosen},
		"a short password":  {"password", code, "bob@example.com", "short"},
		"a common password": {"password", code, "bob@example.com", "password1234"},
		"another code":      {"code", "weirinv_" + strings.Repeat("0", 48), "bob@example.com", chosen},
		"no code":           {"code", "", "bob@example.com", chosen},
		"a reset code":      {"code", "weirpwd_" + code[8:], "bob@example.com", chosen},
	} {
		tenantstest.Want(t, name, join(c.code, c.email, c.password), 422, `id="fault-`+c.field+`"`)
	}
	if got := join(" "+code+"\n", "Bob@example.com", chosen); got.Code != 303 || got.Header().Get("Location") != "/in" {
		t.Errorf("joined: %d %v %s", got.Code, got.Header(), got.Body)
	}
	tenantstest.Want(t, "again", join(code, "bob@example.com", chosen), 422, "used already")
	if want := []string{"let in bob@example.com as developer"}; !slices.Equal(r.asked.asked, want) {
		t.Errorf("asked for %q, want %q", r.asked.asked, want)
	}
}

// A reset code works once, and removes all other access of the member.
func TestReset(t *testing.T) {
	r := open(t)
	bob := r.add(t, "org_a", "bob@example.com", tenants.Developer)
	_, made := r.call(t, "org_a", "POST", "/v1/members/"+bob+"/reset-code", "")
	form := url.Values{"code": {made["code"].(string)}, "password": {"password1234"}}
	tenantstest.Want(t, "a common password", r.page(t, "", "POST", "/console/reset", form), 422, "among the first that are guessed")
	form.Set("password", chosen)
	if got := r.page(t, "", "POST", "/console/reset", form); got.Code != 303 || got.Header().Get("Location") != identity.SignInPath {
		t.Errorf("reset: %d %v %s", got.Code, got.Header(), got.Body)
	}
	if got := r.page(t, "", "POST", "/console/reset", form); got.Code != 422 {
		t.Errorf("again: %d %s", got.Code, got.Body)
	}
	if want := []string{"end " + bob + ": the password was reset", "no passkeys of " + bob}; !slices.Equal(r.asked.asked, want) {
		t.Errorf("asked for %q, want %q", r.asked.asked, want)
	}
}

// There is a first owner only while there are no members.
func TestFirstOwner(t *testing.T) {
	r := open(t)
	if _, _, err := r.Codes.IssueOwnerCode(t.Context(), unitofwork.AtStart()); err == nil {
		t.Error("a code for the first owner beside members")
	}
	if got := r.page(t, "", "POST", "/console/welcome", url.Values{"code": {"weirown_" + strings.Repeat("0", 48)}}); got.Code != 422 {
		t.Errorf("with a code that is none: %d %s", got.Code, got.Body)
	}
}

// Attempts are counted by code, and limited.
func TestAttemptsAreCounted(t *testing.T) {
	r := open(t)
	router := chi.NewRouter()
	r.pages(router)
	same := func(router2 chi.Router) { router2.Mount("/", router) }
	for _, want := range []int{422, 429} {
		got := tenantstest.Call(t, same, identity.Principal{}, "POST", "/console/reset", "", url.Values{"code": {"x"}})
		if got.Code != want || want == 429 && got.Header().Get("Retry-After") != "60" {
			t.Errorf("%d %v, want %d", got.Code, got.Header(), want)
		}
	}
}

// The pages show people to those who may read them,
// and change those whom their reader manages.
func TestPages(t *testing.T) {
	r := open(t)
	for path, want := range map[string]string{"": "a@example.com", "/invitations": "again@example.com", "/invitations/new": "Developer", "/mem_a/reset": "new password"} {
		if got := r.page(t, tenants.Admin, "GET", membersPath+path, nil); got.Code != 200 || !strings.Contains(got.Body.String(), want) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	for path, want := range map[string]int{"/mem_b": 404, "/mem_gone_a": 404, "/invitations/inv_b/revoke": 404, "/invitations/inv_a/revoke": 200} {
		if got := r.page(t, tenants.Admin, "GET", membersPath+path, nil); got.Code != want {
			t.Errorf("%s: %d, want %d", path, got.Code, want)
		}
	}
	if got := r.page(t, tenants.Viewer, "GET", membersPath+"/mem_a", nil); got.Code != 403 {
		t.Errorf("a member as viewer: %d", got.Code)
	}
	bob := r.add(t, "org_a", "bob@example.com", tenants.Developer)
	invited, _ := r.invite(t, "c@example.com", tenants.Viewer)
	for path, want := range map[string]int{"/" + bob + "?role=owner": 403, "/" + bob + "?role=viewer": 303, "/invitations/" + invited + "/revoke": 303} {
		path, query, _ := strings.Cut(path, "?role=")
		if got := r.page(t, tenants.Admin, "POST", membersPath+path, url.Values{"role": {query}}); got.Code != want {
			t.Errorf("%s as %q: %d %s, want %d", path, query, got.Code, got.Body, want)
		}
	}
	if want := []string{bob + " is viewer"}; !slices.Equal(r.asked.asked, want) {
		t.Errorf("asked for %q, want %q", r.asked.asked, want)
	}
}
