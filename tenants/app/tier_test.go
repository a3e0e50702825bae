package app_test

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// The tier that the ledger publishes replaces the original one, and
// the request that created the organization may still be repeated.
// A key's own limit is never above the published one.
func testTierOfTheLedger(t *testing.T, p *process) {
	i := p.world.ingestor(t)
	create := func() answer {
		return p.must(t, 201, "POST", "/v1/organizations", `{"name":"Acme","tier":"indie"}`, header{"Idempotency-Key", "tier"})
	}
	made := create()
	if made.get("tier") != "indie" {
		t.Errorf("it begins with %q", made.get("tier"))
	}
	acme := made.get("id")
	i.publish(contract.TopicAccounts, contract.TypeAccountChanged, acme, contract.Account{Organization: acme, Tier: "scale", RequestsPerMinute: 60, Version: 1})
	testenv.Eventually(t, timeout, func() error {
		if got := p.must(t, 200, "GET", "/v1/organizations/"+acme, ""); got.get("tier") != "scale" {
			return fmt.Errorf("%w: %s", errNotYet, got.text)
		}
		return nil
	})
	if again := create(); again.get("id") != acme || again.get("tier") != "scale" {
		t.Errorf("the same request again: %s", again.text)
	}
	project := p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": acme, "name": "Shop"})).get("id")
	for rate, want := range map[int]int{60: 201, 61: 400} {
		key := text(map[string]any{"project": project, "environment": "dev", "name": "n", "rate_per_minute": rate})
		if got := p.call(t, operatorToken, "POST", "/v1/api-keys", key); got.status != want {
			t.Errorf("a key with a limit of %d: %d %s", rate, got.status, got.text)
		}
	}
}
