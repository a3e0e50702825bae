package console

import (
	"net/http"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

type securityPage struct {
	settings
	LeakedKeys    ui.Field
	PlainHTTPKeys ui.Field
}

func (c *console) showSecurity(w http.ResponseWriter, r *http.Request) error {
	caller := callerOf(r)
	policy, err := c.Registrar.SecurityPolicy(r.Context(), caller, caller.Organization)
	if err != nil {
		return err
	}
	wanted := registrar.NewSecurityPolicy{LeakedKeys: policy.LeakedKeys, PlainHTTPKeys: policy.PlainHTTPKeys}
	return c.writeSecurity(w, r, http.StatusOK, wanted, nil)
}

func (c *console) writeSecurity(w http.ResponseWriter, r *http.Request, status int, wanted registrar.NewSecurityPolicy, fault error) error {
	shown, err := c.settings(r)
	if err != nil {
		return err
	}
	c.pages.Write(w, r, status, "security", ui.View{
		Title: "Security", Tabs: tabs(r, securityPath),
		Flash: ui.TakeFlash(w, r, map[string]string{"policy-set": "The security policy is in force."}),
		Data: securityPage{shown,
			ui.Field{Name: "leaked_keys", Label: "A key that was found in public", Fault: faultOf(fault, "leaked_keys"),
				Hint: "A service that looks for secrets in public repositories has reported it. Whatever you choose, the key is flagged here.",
				Choices: ui.Choose(string(wanted.LeakedKeys),
					[2]string{string(tenants.NotifyLeaked), "Flag it, and leave it in force"},
					[2]string{string(tenants.RotateLeaked), "Let it end in a while, so that it must be rotated"},
					[2]string{string(tenants.RevokeLeaked), "Revoke it at once"})},
			ui.Field{Name: "plain_http_keys", Label: "A key that was sent over plain HTTP", Fault: faultOf(fault, "plain_http_keys"),
				Hint: "Whoever is on the way can read it there. The request itself is always refused, and the key flagged here.",
				Choices: ui.Choose(string(wanted.PlainHTTPKeys),
					[2]string{string(tenants.FlagPlainHTTP), "Flag it, and leave it in force"},
					[2]string{string(tenants.RevokePlainHTTP), "Revoke it at once"})},
		},
	})
	return nil
}

func (c *console) setSecurity(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	organization := callerOf(r).Organization
	wanted := registrar.NewSecurityPolicy{
		LeakedKeys:    tenants.LeakedPolicy(r.PostForm.Get("leaked_keys")),
		PlainHTTPKeys: tenants.PlainHTTPPolicy(r.PostForm.Get("plain_http_keys")),
	}
	_, err := c.Registrar.SetSecurityPolicy(r.Context(), c.requestOf(r), organization, wanted)
	if isInvalid(err) {
		return c.writeSecurity(w, r, http.StatusUnprocessableEntity, wanted, err)
	}
	if err != nil {
		return problemOf(err, "organization", organization)
	}
	ui.SetFlash(w, "policy-set")
	http.Redirect(w, r, securityPath, http.StatusSeeOther)
	return nil
}
