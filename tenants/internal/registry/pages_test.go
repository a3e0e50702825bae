package registry_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// owned makes the member of org_a its owner.
func (r room) owned(t *testing.T) {
	t.Helper()
	owner := tenants.MemberRoleChanged{Member: "mem_a", Role: tenants.Owner, At: tenantstest.Noon}
	testenv.Must(t, r.work.Events.Append(t.Context(), unitofwork.Stream("org_a", "member", "mem_a"), 0, nil, owner))
}

// A project is renamed by its form, which shows faults of a name.
func TestFormOfAProject(t *testing.T) {
	r := open(t, 1)
	_, made := r.call(t, "org_a", "POST", "/v1/projects", `{"organization":"org_a","name":"Shop"}`)
	path := "/projects/" + made["id"].(string)
	tenantstest.Want(t, "the form", r.page(t, tenants.Developer, "GET", path, nil), 200, `value="Shop"`)
	tenantstest.Want(t, "as viewer", r.page(t, tenants.Viewer, "GET", path, nil), 403, "Your role here is viewer")
	tenantstest.Want(t, "another's", r.page(t, tenants.Admin, "GET", "/projects/prj_b", nil), 404, "prj_b")
	tenantstest.Want(t, "no name", r.page(t, tenants.Admin, "POST", path, url.Values{"name": {" "}}), 422, `id="fault-name"`)
	tenantstest.Want(t, "another's name", r.page(t, tenants.Admin, "POST", "/projects/prj_b", url.Values{"name": {"Mine"}}), 404, "prj_b")
	tenantstest.Want(t, "a name", r.page(t, tenants.Admin, "POST", path, url.Values{"name": {"Store"}}), 303, "")
	tenantstest.Want(t, "after that", r.page(t, tenants.Admin, "GET", "/projects", nil), 200, "Store")
}

// Owners delete a project by typing its name, see
// its progress, and restore it while they can.
func TestFormsOfDeletions(t *testing.T) {
	r := open(t, 1)
	r.services.Deletions = r.services.Deletions.Within(time.Hour)
	r.owned(t)
	const path = "/projects/prj_a/delete"
	typed := url.Values{"name": {"a"}}
	tenantstest.Want(t, "as admin", r.page(t, tenants.Admin, "POST", path, typed), 403, "Your role here is admin")
	tenantstest.Want(t, "another's", r.page(t, tenants.Owner, "POST", "/projects/prj_b/delete", typed), 404, "prj_b")
	tenantstest.Want(t, "nothing yet", r.page(t, tenants.Owner, "GET", "/deletions", nil), 200, "Nothing was deleted")
	tenantstest.Want(t, "the form", r.page(t, tenants.Owner, "GET", path, nil), 200, "It can be restored for 1h0m0s")
	tenantstest.Want(t, "another name", r.page(t, tenants.Owner, "POST", path, url.Values{"name": {"b"}}), 422, `id="fault-name"`)
	tenantstest.Want(t, "its name", r.page(t, tenants.Owner, "POST", path, typed), 303, "")
	tenantstest.Want(t, "once deleted", r.page(t, tenants.Owner, "GET", "/projects/prj_a", nil), 404, "prj_a")
	tenantstest.Want(t, "the deletions", r.page(t, tenants.Owner, "GET", "/deletions", nil), 200, `action="/console/settings/projects/prj_a/restore"`)
	tenantstest.Want(t, "restored as admin", r.page(t, tenants.Admin, "POST", "/projects/prj_a/restore", url.Values{}), 403, "Your role here is admin")
	tenantstest.Want(t, "another's restored", r.page(t, tenants.Owner, "POST", "/projects/prj_b/restore", url.Values{}), 404, "prj_b")
	tenantstest.Want(t, "restored", r.page(t, tenants.Owner, "POST", "/projects/prj_a/restore", url.Values{}), 303, "")
	tenantstest.Want(t, "once restored", r.page(t, tenants.Owner, "GET", "/projects/prj_a", nil), 200, "prj_a")
}

// The deletion of an organization signs its members out, the caller included.
func TestFormOfAnOrganizationsDeletion(t *testing.T) {
	r := open(t, 1)
	r.owned(t)
	const path = "/organization/delete"
	tenantstest.Want(t, "as admin", r.page(t, tenants.Admin, "GET", path, nil), 403, "Your role here is admin")
	tenantstest.Want(t, "the form", r.page(t, tenants.Owner, "GET", path, nil), 200, "Nothing brings it back")
	tenantstest.Want(t, "another name", r.page(t, tenants.Owner, "POST", path, url.Values{"name": {"b"}}), 422, `id="fault-name"`)
	got := r.page(t, tenants.Owner, "POST", path, url.Values{"name": {"a"}})
	if tenantstest.Want(t, "its name", got, 303, ""); got.Header().Get("Location") != identity.SignInPath || !strings.Contains(got.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("leads on with %v", got.Header())
	}
	if status, answer := r.call(t, "org_a", "GET", "/v1/organizations/org_a", ""); status != 404 {
		t.Errorf("the organization after that: %d %v", status, answer)
	}
}

// The form of a service token offers no scope beyond the
// reader's role, shows the token once, and another form ends it.
func TestFormsOfServiceTokens(t *testing.T) {
	r := open(t, 1)
	tenantstest.Want(t, "the form", r.page(t, tenants.Admin, "GET", "/service-tokens/new", nil), 200, `value="billing:read"`)
	form := url.Values{"name": {"invoicing"}, "scopes": {"billing:read"}, "form": {"form_1"}}
	tenantstest.Want(t, "as developer", r.page(t, tenants.Developer, "POST", "/service-tokens", form), 403, "Your role here is developer")
	tenantstest.Want(t, "no scope", r.page(t, tenants.Admin, "POST", "/service-tokens", url.Values{"name": {"typed"}}), 422, "Choose at least one.")
	beyond := url.Values{"name": {"n"}, "scopes": {"tenants:admin"}}
	tenantstest.Want(t, "a scope beyond", r.page(t, tenants.Admin, "POST", "/service-tokens", beyond), 403, "no more than its creator")
	made := r.page(t, tenants.Admin, "POST", "/service-tokens", form)
	secret := regexp.MustCompile(`weirsvc_[0-9a-f]{48}`).FindString(made.Body.String())
	if made.Code != 201 || secret == "" {
		t.Fatalf("made: %d %s", made.Code, made.Body)
	}
	again := r.page(t, tenants.Admin, "POST", "/service-tokens", form)
	if tenantstest.Want(t, "the form again", again, 409, "was shown once"); strings.Contains(again.Body.String(), secret) {
		t.Error("the form again shows the token")
	}
	path := regexp.MustCompile(`/service-tokens/[^/"]+/revoke`).FindString(r.page(t, tenants.Admin, "GET", "/service-tokens", nil).Body.String())
	tenantstest.Want(t, "to revoke", r.page(t, tenants.Admin, "GET", path, nil), 200, "invoicing")
	tenantstest.Want(t, "another's", r.page(t, tenants.Admin, "GET", "/service-tokens/tok_b/revoke", nil), 404, "tok_b")
	tenantstest.Want(t, "too long a reason", r.page(t, tenants.Admin, "POST", path, url.Values{"reason": {strings.Repeat("x", 501)}}), 422, `id="fault-reason"`)
	tenantstest.Want(t, "revoked", r.page(t, tenants.Admin, "POST", path, url.Values{"reason": {"moved"}}), 303, "")
	tenantstest.Want(t, "after that", r.page(t, tenants.Admin, "GET", "/service-tokens", nil), 200, "moved")
}

// The form of the organization is for those
// who may change it, and requires a name.
func TestFormOfTheOrganization(t *testing.T) {
	r := open(t, 1)
	tenantstest.Want(t, "the form", r.page(t, tenants.Viewer, "GET", "/organization", nil), 200, "Acme")
	tenantstest.Want(t, "as developer", r.page(t, tenants.Developer, "POST", "/organization", url.Values{"name": {"x"}}), 403, "Your role here is developer")
	tenantstest.Want(t, "no name", r.page(t, tenants.Admin, "POST", "/organization", url.Values{"name": {" "}}), 422, `id="fault-name"`)
	_, made := r.call(t, "", "POST", "/v1/organizations", `{"name":"Acme","tier":"indie"}`)
	acme := made["id"].(string)
	added := tenants.MemberAdded{Member: "mem_new", Organization: acme, Email: "new@example.com", Name: "New", Role: tenants.Admin, PasswordHash: "x", At: tenantstest.Noon}
	testenv.Must(t, r.work.Events.Append(t.Context(), unitofwork.Stream(acme, "member", "mem_new"), 0, nil, added))
	admin := tenantstest.SignedIn("new", tenants.Admin)
	admin.Organization = acme
	tenantstest.Want(t, "a name", tenantstest.Call(t, r.pages, admin, "POST", "/console/settings/organization", "", url.Values{"name": {"Acme & Co"}}), 303, "")
	if _, renamed := r.call(t, "", "GET", "/v1/organizations/"+acme, ""); renamed["name"] != "Acme & Co" {
		t.Errorf("renamed: %v", renamed)
	}
}

// The form of the security policy sets it, and keeps refused input.
func TestFormOfTheSecurityPolicy(t *testing.T) {
	r := open(t, 0)
	r.owned(t)
	form := url.Values{"leaked_keys": {"revoke"}, "plain_http_keys": {"revoke"}, "passwords": {"allowed"}}
	tenantstest.Want(t, "as developer", r.page(t, tenants.Developer, "POST", "/security", form), 403, "Your role here is developer")
	tenantstest.Want(t, "by the owner", r.page(t, tenants.Owner, "POST", "/security", form), 303, "")
	form.Set("leaked_keys", "x")
	tenantstest.Want(t, "a policy that is none", r.page(t, tenants.Owner, "POST", "/security", form), 422, `id="fault-leaked_keys"`)
	form.Set("leaked_keys", "notify")
	form.Set("passwords", "off")
	tenantstest.Want(t, "nobody could sign in", r.page(t, tenants.Owner, "POST", "/security", form), 422, `id="fault-passwords"`)
	form.Set("passwords", "sometimes")
	tenantstest.Want(t, "a word that is none", r.page(t, tenants.Owner, "POST", "/security", form), 400, "could not be read")
	if _, policy := r.call(t, "org_a", "GET", "/v1/organizations/org_a/security-policy", ""); policy["leaked_keys"] != "revoke" ||
		policy["plain_http_keys"] != "revoke" || policy["passwords"] != "allowed" {
		t.Errorf("in force is %v", policy)
	}
}
