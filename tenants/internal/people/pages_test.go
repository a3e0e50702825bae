package people_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Holders of a code get its form without a
// session, and nothing of the code is shown.
func TestFormsForCodes(t *testing.T) {
	r := open(t)
	for path, fields := range map[string][]string{
		"/console/join":    {"code", "email", "name", "password"},
		"/console/welcome": {"code", "organization", "name", "email", "password"},
		"/console/reset":   {"code", "password"},
	} {
		shown := r.page(t, "", "GET", path, nil)
		tenantstest.Want(t, path, shown, 200, `action="`+path+`"`)
		for _, field := range fields {
			tenantstest.Want(t, path, shown, 200, `name="`+field+`"`)
		}
		form := url.Values{"code": {"none"}, "email": {"typed@example.com"}, "password": {chosen}}
		refused := r.page(t, "", "POST", path, form)
		if tenantstest.Want(t, path, refused, 422, "This code is not valid"); strings.Contains(refused.Body.String(), chosen) {
			t.Errorf("%s shows the password again", path)
		}
	}
	if len(r.asked.asked) != 0 {
		t.Errorf("let in: %q", r.asked.asked)
	}
}

// A member is removed by those who manage them, and nobody
// removes the only owner.
func TestFormOfARemoval(t *testing.T) {
	r := open(t)
	bob, ada := r.add(t, "org_a", "bob@example.com", tenants.Developer), r.add(t, "org_a", "ada@example.com", tenants.Owner)
	path := membersPath + "/" + bob + "/remove"
	tenantstest.Want(t, "the member", r.page(t, tenants.Admin, "GET", membersPath+"/"+bob, nil), 200, "bob@example.com")
	tenantstest.Want(t, "the form", r.page(t, tenants.Admin, "GET", path, nil), 200, "bob@example.com")
	tenantstest.Want(t, "of an owner as admin", r.page(t, tenants.Admin, "GET", membersPath+"/"+ada+"/remove", nil), 403, "Your role here is admin")
	tenantstest.Want(t, "as developer", r.page(t, tenants.Developer, "POST", path, url.Values{}), 403, "Your role here is developer")
	tenantstest.Want(t, "of an owner", r.page(t, tenants.Admin, "POST", membersPath+"/"+ada+"/remove", url.Values{}), 403, "Your role here is admin")
	tenantstest.Want(t, "another's", r.page(t, tenants.Admin, "POST", membersPath+"/mem_b/remove", url.Values{}), 404, "mem_b")
	owner := tenantstest.SignedIn("a", tenants.Owner)
	owner.Member = ada
	tenantstest.Want(t, "the only owner", tenantstest.Call(t, r.pages, owner, "POST", membersPath+"/"+ada+"/remove", "", url.Values{}), 409, "only owner")
	demoted := tenantstest.Call(t, r.pages, owner, "POST", membersPath+"/"+ada, "", url.Values{"role": {"viewer"}})
	tenantstest.Want(t, "the only owner's role", demoted, 422, `id="fault-role"`)
	if list := r.page(t, tenants.Admin, "GET", membersPath, nil).Body.String(); !strings.Contains(list, path) || strings.Contains(list, ada+"/remove") {
		t.Errorf("an admin is offered to remove: %s", list)
	}
	tenantstest.Want(t, "removed", r.page(t, tenants.Admin, "POST", path, url.Values{}), 303, "")
	tenantstest.Want(t, "again", r.page(t, tenants.Admin, "POST", path, url.Values{}), 404, bob)
	if asked := []string{"end " + bob + ": the member was removed"}; !slices.Equal(r.asked.asked, asked) {
		t.Errorf("asked for %q, want %q", r.asked.asked, asked)
	}
}

// A member's reset code is shown once, to their managers, and works.
func TestFormOfAReset(t *testing.T) {
	r := open(t)
	bob, ada := r.add(t, "org_a", "bob@example.com", tenants.Developer), r.add(t, "org_a", "ada@example.com", tenants.Owner)
	path := membersPath + "/" + bob + "/reset"
	tenantstest.Want(t, "as developer", r.page(t, tenants.Developer, "POST", path, url.Values{}), 403, "Your role here is developer")
	tenantstest.Want(t, "of an owner", r.page(t, tenants.Admin, "POST", membersPath+"/"+ada+"/reset", url.Values{}), 403, "Your role here is admin")
	tenantstest.Want(t, "another's", r.page(t, tenants.Admin, "POST", membersPath+"/mem_b/reset", url.Values{}), 404, "mem_b")
	issued := r.page(t, tenants.Admin, "POST", path, url.Values{})
	code := codeIn(t, "weirpwd", issued.Body.String())
	tenantstest.Want(t, "issued", issued, 201, "https://weir.example/console/reset#"+code)
	used := r.page(t, "", "POST", "/console/reset", url.Values{"code": {code}, "password": {chosen}})
	if tenantstest.Want(t, "used", used, 303, ""); used.Header().Get("Location") != identity.SignInPath {
		t.Errorf("leads to %v", used.Header())
	}
}

// An invitation that is sent again has another
// code, and the previous one is refused.
func TestInvitationsAreSentAgain(t *testing.T) {
	r := open(t)
	invited, before := r.invite(t, "bob@example.com", tenants.Developer)
	path := membersPath + "/invitations/" + invited + "/resend"
	tenantstest.Want(t, "the form", r.page(t, tenants.Admin, "GET", path, nil), 200, "bob@example.com")
	tenantstest.Want(t, "as developer", r.page(t, tenants.Developer, "POST", path, url.Values{}), 403, "Your role here is developer")
	tenantstest.Want(t, "another's", r.page(t, tenants.Admin, "POST", membersPath+"/invitations/inv_b/resend", url.Values{}), 404, "inv_b")
	sent := r.page(t, tenants.Admin, "POST", path, url.Values{})
	code := codeIn(t, "weirinv", sent.Body.String())
	tenantstest.Want(t, "sent", sent, 201, "https://weir.example/console/join#"+code)
	join := url.Values{"email": {"bob@example.com"}, "name": {"Bob"}, "password": {chosen}}
	join.Set("code", before)
	tenantstest.Want(t, "the code of before", r.page(t, "", "POST", "/console/join", join), 422, "This code is not valid")
	join.Set("code", code)
	tenantstest.Want(t, "the new code", r.page(t, "", "POST", "/console/join", join), 303, "")
	tenantstest.Want(t, "once used", r.page(t, tenants.Admin, "POST", path, url.Values{}), 409, "accepted or revoked")
}

// The first owner begins with an organization of their own, once.
func TestTheFirstOwnerBegins(t *testing.T) {
	r := openOn(t, pgtest.Open(t, schema.Name, schema.Migrations()...))
	code, _, err := r.Codes.IssueOwnerCode(t.Context(), unitofwork.AtStart())
	testenv.Must(t, err)
	form := url.Values{"code": {code.Reveal()}, "organization": {"Acme"}, "name": {"Ada"}, "email": {"ada@example.com"}, "password": {"short"}}
	tenantstest.Want(t, "too short a password", r.page(t, "", "POST", "/console/welcome", form), 422, `id="fault-password"`)
	form.Set("password", chosen)
	tenantstest.Want(t, "begun", r.page(t, "", "POST", "/console/welcome", form), 303, "")
	tenantstest.Want(t, "again", r.page(t, "", "POST", "/console/welcome", form), 422, "code")
	if asked := []string{"let in ada@example.com as owner"}; !slices.Equal(r.asked.asked, asked) {
		t.Errorf("asked for %q, want %q", r.asked.asked, asked)
	}
}

// A form of an invitation that is sent twice shows its code once.
func TestAnInvitationIsShownOnce(t *testing.T) {
	r := open(t)
	form := url.Values{"email": {"bob@example.com"}, "role": {"developer"}, "form": {"form_1"}}
	code := codeIn(t, "weirinv", r.page(t, tenants.Admin, "POST", membersPath+"/invitations", form).Body.String())
	again := r.page(t, tenants.Admin, "POST", membersPath+"/invitations", form)
	if tenantstest.Want(t, "again", again, 409, "shown once"); strings.Contains(again.Body.String(), code) {
		t.Error("the code is shown again")
	}
}
