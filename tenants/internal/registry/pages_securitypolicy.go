package registry

import (
	"fmt"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

type securityPage struct {
	pages.Settings
	LeakedKeys    ui.Field
	PlainHTTPKeys ui.Field
	Passwords     ui.Field
	Beside        string // members who can sign in without a password
}

func (p Pages) showSecurity(w http.ResponseWriter, r *http.Request) error {
	caller := pages.CallerOf(r)
	policy, err := p.Policies.Policy(r.Context(), caller, caller.Organization)
	if err != nil {
		return err
	}
	wanted := NewPolicy{LeakedKeys: policy.LeakedKeys, PlainHTTPKeys: policy.PlainHTTPKeys, PasswordsOff: &policy.PasswordsOff}
	return p.writeSecurity(w, r, http.StatusOK, wanted, nil)
}

func (p Pages) writeSecurity(w http.ResponseWriter, r *http.Request, status int, wanted NewPolicy, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	beside, err := p.beside(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "security", ui.View{
		Title: "Security", Tabs: pages.Tabs(r, pages.SecurityPath),
		Flash: ui.TakeFlash(w, r, map[string]string{"policy-set": "The security policy is in force."}),
		Data: securityPage{shown,
			ui.Field{Name: "leaked_keys", Label: "A key that was found in public", Fault: pages.FaultOf(fault, "leaked_keys"),
				Hint: "A service that looks for secrets in public repositories has reported it. Whatever you choose, the key is flagged here.",
				Choices: ui.NewChoices(string(wanted.LeakedKeys),
					[2]string{string(tenants.NotifyLeaked), "Flag it, and leave it in force"},
					[2]string{string(tenants.RotateLeaked), "Let it end in a while, so that it must be rotated"},
					[2]string{string(tenants.RevokeLeaked), "Revoke it at once"})},
			ui.Field{Name: "plain_http_keys", Label: "A key that was sent over plain HTTP", Fault: pages.FaultOf(fault, "plain_http_keys"),
				Hint: "Anyone who is on the way can read it there. The request itself is always refused, and the key flagged here.",
				Choices: ui.NewChoices(string(wanted.PlainHTTPKeys),
					[2]string{string(tenants.FlagPlainHTTP), "Flag it, and leave it in force"},
					[2]string{string(tenants.RevokePlainHTTP), "Revoke it at once"})},
			passwordsField(wanted.PasswordsOff != nil && *wanted.PasswordsOff, fault), beside,
		},
	})
	return nil
}

// passwordsField is the field by which owners switch passwords off.
func passwordsField(off bool, fault error) ui.Field {
	return ui.Field{
		Name: "passwords", Label: "Signing in with a password", Fault: pages.FaultOf(fault, "passwords"),
		Hint: "Where it is off, nobody signs in, joins or confirms with a password. Who is signed in stays so. " +
			"A link to reset a password lets its holder in once, to add a passkey.",
		Choices: ui.NewChoices(tenants.SecurityPolicy{PasswordsOff: off}.PasswordPolicy(),
			[2]string{tenants.PasswordsAllowed, "Allowed, beside passkeys and the identity provider"},
			[2]string{tenants.PasswordsOff, "Off: passkeys or the identity provider alone"}),
	}
}

// beside is how many members can sign in without a password.
func (p Pages) beside(r *http.Request) (string, error) {
	able, all, err := p.Policies.members.MembersWithoutPassword(r.Context(), pg.Organization(pages.CallerOf(r).Organization))
	return fmt.Sprintf("%d of %d members have a passkey, or are known to the identity provider.", able, all), err
}

func (p Pages) setSecurity(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	organization := pages.CallerOf(r).Organization
	wanted := NewPolicy{
		LeakedKeys:    tenants.LeakedPolicy(r.PostForm.Get("leaked_keys")),
		PlainHTTPKeys: tenants.PlainHTTPPolicy(r.PostForm.Get("plain_http_keys")),
	}
	off, known := tenants.ParsePasswordsOff(r.PostForm.Get("passwords"))
	if wanted.PasswordsOff = off; !known {
		return httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest, "The form could not be read. Go back, reload the page and send it again.")
	}
	_, err := p.Policies.Set(r.Context(), p.RequestOf(r), organization, wanted)
	if pages.IsInvalid(err) {
		return p.writeSecurity(w, r, http.StatusUnprocessableEntity, wanted, err)
	}
	if err != nil {
		return pages.ProblemOf(err, "organization", organization)
	}
	return pages.Done(w, r, "policy-set", pages.SecurityPath)
}
