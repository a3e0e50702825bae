package tenants_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

func keyIssued() tenants.APIKeyIssued {
	return tenants.APIKeyIssued{
		APIKey: "key_1", Organization: "org_1", Project: "prj_1", Environment: tenants.Prod, Name: "Shop, live",
		Digest: digest("ab12"), At: noon,
	}
}

func issueKey() tenants.IssueAPIKey {
	return tenants.IssueAPIKey{
		ID: "key_1", Organization: "org_1", Project: "prj_1", Environment: tenants.Prod, Name: "Shop, live",
		Digest: digest("ab12"), At: noon,
	}
}

// A key is issued once; a repeated request gets no
// second key and no way to the first one's secret.
func TestAPIKeyIssueDecisions(t *testing.T) {
	issue := func(change func(*tenants.IssueAPIKey)) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			cmd := issueKey()
			change(&cmd)
			return k.Issue(cmd)
		}
	}
	same := func(*tenants.IssueAPIKey) {}
	expiring := keyIssued()
	expiring.ExpiresAt = &later
	narrow := keyIssued()
	narrow.Access = tenants.ProjectAccess
	decide(t, map[string]decision[tenants.APIKey]{
		"issue": {when: issue(same), then: []tenants.Event{keyIssued()}},
		"issue with an end": {
			when: issue(func(c *tenants.IssueAPIKey) { c.ExpiresAt = later }),
			then: []tenants.Event{expiring},
		},
		"issue again":                      {given: []tenants.Event{keyIssued()}, when: issue(same), fails: tenants.ErrShownOnce},
		"issue again, with another secret": {given: []tenants.Event{keyIssued()}, when: issue(func(c *tenants.IssueAPIKey) { c.Digest = digest("cd34") }), fails: tenants.ErrShownOnce},
		"issue again, for another project": {given: []tenants.Event{keyIssued()}, when: issue(func(c *tenants.IssueAPIKey) { c.Project = "prj_2" }), fails: tenants.ErrReused},
		"issue again, with another end":    {given: []tenants.Event{keyIssued()}, when: issue(func(c *tenants.IssueAPIKey) { c.ExpiresAt = later }), fails: tenants.ErrReused},
		"an end that can't be written":     {when: issue(func(c *tenants.IssueAPIKey) { c.ExpiresAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }), faults: []string{"expires_at"}},
		"issue one that reads less":        {when: issue(func(c *tenants.IssueAPIKey) { c.Access = tenants.ProjectAccess }), then: []tenants.Event{narrow}},
		"issue one that reads all":         {when: issue(func(c *tenants.IssueAPIKey) { c.Access = tenants.FullAccess }), then: []tenants.Event{keyIssued()}},
		"issue again, to read all":         {given: []tenants.Event{narrow}, when: issue(same), fails: tenants.ErrReused},
		"no such access":                   {when: issue(func(c *tenants.IssueAPIKey) { c.Access = "read" }), faults: []string{"access"}},
		"an end that is now":               {when: issue(func(c *tenants.IssueAPIKey) { c.ExpiresAt = noon }), faults: []string{"expires_at"}},
		"no such environment":              {when: issue(func(c *tenants.IssueAPIKey) { c.Environment = "production" }), faults: []string{"environment"}},
		"every fault at once": {
			when:   issue(func(c *tenants.IssueAPIKey) { *c = tenants.IssueAPIKey{At: noon} }),
			faults: []string{"project", "name", "environment"},
		},
	})
}

// A key is revoked once and forever; the first reason stays.
func TestAPIKeyRevokeDecisions(t *testing.T) {
	revoked := tenants.APIKeyRevoked{APIKey: "key_1", Reason: "leaked", At: later}
	revoke := func(reason string) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Revoke(tenants.Revoke{Reason: reason, At: later})
		}
	}
	decide(t, map[string]decision[tenants.APIKey]{
		"revoke":                  {given: []tenants.Event{keyIssued()}, when: revoke(" leaked "), then: []tenants.Event{revoked}},
		"revoke again":            {given: []tenants.Event{keyIssued(), revoked}, when: revoke("other")},
		"revoke without a reason": {given: []tenants.Event{keyIssued()}, when: revoke(""), then: []tenants.Event{tenants.APIKeyRevoked{APIKey: "key_1", At: later}}},
		"revoke what is not":      {when: revoke("leaked"), fails: tenants.ErrNotFound},
		"a control character":     {given: []tenants.Event{keyIssued()}, when: revoke("a\x1bb"), faults: []string{"reason"}},
	})
}

// A key works from its first instant up to, and not
// including, its end; a revocation ends it at any time.
func TestAPIKeyState(t *testing.T) {
	issued := keyIssued()
	issued.ExpiresAt = &later
	revoked := tenants.APIKeyRevoked{APIKey: "key_1", At: noon}
	for name, test := range map[string]struct {
		given []tenants.Event
		at    time.Time
		want  tenants.State
	}{
		"no end":                   {[]tenants.Event{keyIssued()}, later.AddDate(100, 0, 0), tenants.Active},
		"just before the end":      {[]tenants.Event{issued}, later.Add(-1), tenants.Active},
		"at the end":               {[]tenants.Event{issued}, later, tenants.Expired},
		"revoked before the end":   {[]tenants.Event{issued, revoked}, noon, tenants.Revoked},
		"revoked, then at the end": {[]tenants.Event{issued, revoked}, later, tenants.Revoked},
	} {
		var key tenants.APIKey
		for _, event := range test.given {
			key.Apply(event)
		}
		if got := key.State(test.at); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
