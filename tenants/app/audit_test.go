package app_test

import (
	"slices"
	"strings"
	"testing"
)

// auditOf reads the audit of an organization, as the operator.
func (p *process) auditOf(t *testing.T, organization, more string) []map[string]any {
	t.Helper()
	return p.must(t, 200, "GET", "/v1/audit-events?limit=1000&organization="+organization+more, "").items(t)
}

// Every decision is in the audit: what changed, by whom, in which
// role, from where and in which request, with the names of that time.
func testAuditHasWhoAndWhat(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	b.post(t, apiKeysPage+"/"+acme.key+"/revoke", map[string]string{"reason": "leaked"}, header{"User-Agent", "Test/1.0\x1b"})
	b.post(t, "/console/sign-out", nil)
	lines := p.auditOf(t, acme.organization, "")
	var actions []string
	for i, line := range lines {
		actions = append(actions, line["action"].(string))
		if got := line["sequence"].(float64); int(got) != len(lines)-i {
			t.Errorf("line %d has the number %v", i, got)
		}
	}
	want := []string{"session.ended", "api_key.revoked", "session.started", "member.added", "service_token.issued", "api_key.issued",
		"project.created", "organization.created"}
	if !slices.Equal(actions, want) {
		t.Fatalf("the audit tells of %q, want %q", actions, want)
	}
	revoked := lines[1]
	actor, target := revoked["actor"].(map[string]any), revoked["target"].(map[string]any)
	if actor["kind"] != "member" || actor["role"] != "owner" || !strings.HasPrefix(actor["name"].(string), "Ada (owner@") || actor["id"] != lines[3]["target"].(map[string]any)["id"] {
		t.Errorf("the actor is %v", actor)
	}
	if revoked["address"] != p.address || revoked["client"] != "Test/1.0" || revoked["request_id"] == nil {
		t.Errorf("it came from %v, %v, %v", revoked["address"], revoked["client"], revoked["request_id"])
	}
	before, after := revoked["before"].(map[string]any), revoked["after"].(map[string]any)
	if target["id"] != acme.key || target["name"] != "live" || before["state"] != "active" || after["state"] != "revoked" || after["reason"] != "leaked" {
		t.Errorf("it tells of %v: %v -> %v", target, before, after)
	}
	operator := lines[7]["actor"].(map[string]any)
	if operator["kind"] != "service_token" || operator["name"] != "Operator (from the configuration)" || lines[7]["before"] != nil {
		t.Errorf("the organization was created by %v: %v", operator, lines[7])
	}
	if started := lines[2]; started["actor"].(map[string]any)["id"] != actor["id"] || started["address"] != p.address {
		t.Errorf("the session was started by %v", started)
	}
	var seen []map[string]any // page by page
	for next := ""; ; {
		page := p.must(t, 200, "GET", "/v1/audit-events?limit=3&organization="+acme.organization+next, "")
		seen = append(seen, page.items(t)...)
		if page.body["next_cursor"] == nil {
			break
		}
		next = "&cursor=" + page.get("next_cursor")
	}
	if text(seen) != text(lines) {
		t.Errorf("the pages show %v", seen)
	}
	installation := p.auditOf(t, "*", "")
	if first := installation[len(installation)-1]; first["actor"].(map[string]any)["kind"] != "configuration" {
		t.Errorf("the audit of the installation begins with %v", first)
	}
}
