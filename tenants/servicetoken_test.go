package tenants_test

import (
	"errors"
	"testing"

	"github.com/weirlog/weir/tenants"
)

func tokenIssued() tenants.ServiceTokenIssued {
	return tenants.ServiceTokenIssued{
		ServiceToken: "tok_1", Organization: "org_1", Name: "Billing", Scopes: []string{"billing:read", "billing:write"},
		Digest: digest("ab12"), At: noon,
	}
}

func issueToken() tenants.IssueServiceToken {
	return tenants.IssueServiceToken{
		ID: "tok_1", Organization: "org_1", Name: " Billing ", Digest: digest("ab12"), At: noon,
		Scopes: []string{"billing:write", "billing:read", "billing:write"},
	}
}

// A token is issued once, its scopes sorted and each once.
func TestServiceTokenIssueDecisions(t *testing.T) {
	issue := func(change func(*tenants.IssueServiceToken)) func(tenants.ServiceToken) ([]tenants.Event, error) {
		return func(s tenants.ServiceToken) ([]tenants.Event, error) {
			cmd := issueToken()
			change(&cmd)
			return s.Issue(cmd)
		}
	}
	scopes := func(scopes ...string) func(*tenants.IssueServiceToken) {
		return func(c *tenants.IssueServiceToken) { c.Scopes = scopes }
	}
	same := func(*tenants.IssueServiceToken) {}
	decide(t, map[string]decision[tenants.ServiceToken]{
		"issue":                          {when: issue(same), then: []tenants.Event{tokenIssued()}},
		"issue again":                    {given: []tenants.Event{tokenIssued()}, when: issue(same), fails: tenants.ErrShownOnce},
		"issue again, with other scopes": {given: []tenants.Event{tokenIssued()}, when: issue(scopes("billing:read")), fails: tenants.ErrReused},
		"no scope":                       {when: issue(scopes()), faults: []string{"scopes"}},
		"too many scopes":                {when: issue(scopes(manyScopes()...)), faults: []string{"scopes"}},
		"a scope of another form":        {when: issue(scopes("billing:read", "*", "Billing:read")), faults: []string{"scopes/1", "scopes/2"}},
		"every fault at once":            {when: issue(func(c *tenants.IssueServiceToken) { *c = tenants.IssueServiceToken{} }), faults: []string{"organization", "name", "scopes"}},
	})
}

func manyScopes() (scopes []string) {
	for range 33 {
		scopes = append(scopes, "billing:read")
	}
	return scopes
}

// A restart registers the configured token
// once, and never restores a revoked one.
func TestServiceTokenRegisterDecisions(t *testing.T) {
	configured := tokenIssued()
	configured.Configured = true
	revoked := tenants.ServiceTokenRevoked{ServiceToken: "tok_1", Reason: "leaked", At: later}
	register := func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Register(issueToken()) }
	decide(t, map[string]decision[tenants.ServiceToken]{
		"the first start":     {when: register, then: []tenants.Event{configured}},
		"a restart":           {given: []tenants.Event{configured}, when: register},
		"a restart after all": {given: []tenants.Event{configured, revoked}, when: register},
	})
}

// A token is revoked once and forever; the first reason stays.
func TestServiceTokenRevokeDecisions(t *testing.T) {
	revoked := tenants.ServiceTokenRevoked{ServiceToken: "tok_1", Reason: "leaked", At: later}
	revoke := func(s tenants.ServiceToken) ([]tenants.Event, error) {
		return s.Revoke(tenants.Revoke{Reason: "leaked", At: later})
	}
	decide(t, map[string]decision[tenants.ServiceToken]{
		"revoke":             {given: []tenants.Event{tokenIssued()}, when: revoke, then: []tenants.Event{revoked}},
		"revoke again":       {given: []tenants.Event{tokenIssued(), revoked}, when: revoke},
		"revoke what is not": {when: revoke, fails: tenants.ErrNotFound},
	})
}

// A token never creates a stronger one; an operator may create any.
func TestGrants(t *testing.T) {
	admin := tenants.Caller{ID: "tok_a", Organization: "org_1", Scopes: []string{"tenants:admin", "billing:read"}}
	if err := admin.CheckGrant([]string{"billing:read"}); err != nil {
		t.Errorf("a scope that the caller holds: %v", err)
	}
	if err := admin.CheckGrant([]string{"billing:read", "billing:write"}); !errors.Is(err, tenants.ErrForbidden) {
		t.Errorf("a scope that the caller lacks: got %v", err)
	}
	operator := tenants.Caller{ID: "tok_o", Organization: tenants.Installation, Scopes: []string{"tenants:admin"}}
	if err := operator.CheckGrant([]string{"billing:write"}); err != nil {
		t.Errorf("an operator: %v", err)
	}
}
