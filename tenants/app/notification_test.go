package app_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/testenv"
)

// A webhook gets what is published after its creation, whenever that
// happened: on the clock of a test, which may begin before today, or
// as the client dates an entry.
func TestWebhookGetsFactsOfAnyTime(t *testing.T) {
	w := newWorld(t)
	others, p := contracttest.New(t, "tenants", w.brokers, 1), w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	path := "/v1/organizations/" + acme.organization + "/webhooks"
	hook := text(map[string]any{"url": "https://127.0.0.1:1/x", "events": []string{"quota.exhausted", "error_group.created"}})
	earlier := p.must(t, 201, "POST", path, hook).get("id")
	others.PublishFact(contract.TypeQuotaExhausted, time.Now().AddDate(1, 0, 0), contract.QuotaExhausted{Organization: acme.organization, Test: true})
	p.awaitDeliveries(t, path, earlier, "quota.exhausted")

	later := p.must(t, 201, "POST", path, hook).get("id")
	lastYear := time.Now().AddDate(-1, 0, 0)
	others.PublishFact(contract.TypeQuotaExhausted, lastYear, contract.QuotaExhausted{Organization: acme.organization, Test: true})
	others.PublishFact(contract.TypeErrorGroupCreated, lastYear, contract.ErrorGroupCreated{Organization: acme.organization, Project: acme.project, FirstSeen: lastYear})
	p.awaitDeliveries(t, path, later, "error_group.created", "quota.exhausted")
}

// awaitDeliveries waits until these types, sorted, are sent to a webhook,
// and no others.
func (p *process) awaitDeliveries(t *testing.T, path, webhook string, want ...string) {
	t.Helper()
	testenv.Eventually(t, timeout, func() error {
		var types []string
		for _, delivery := range p.must(t, 200, "GET", path+"/"+webhook+"/deliveries", "").items(t) {
			types = append(types, fmt.Sprint(delivery["type"]))
		}
		if slices.Sort(types); !slices.Equal(types, want) {
			return fmt.Errorf("%w: %q", errNotYet, types)
		}
		return nil
	})
}
