package app_test

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// The tier that the ledger publishes replaces the original one, and
// the request that created the organization may still be repeated.
func TestTierOfTheLedger(t *testing.T) {
	w := newWorld(t)
	i, p := w.ingestor(t), w.start(t, operatorToken)
	create := func() answer {
		return p.must(t, 201, "POST", "/v1/organizations", `{"name":"Acme","tier":"indie"}`, header{"Idempotency-Key", "acme"})
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
}
