package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/testenv"
)

// A test organization goes through a year, as in
// docs/billing.md: charges, exhaustion, upgrade, budget, periods closed
// on the test's clock, statements, an adjustment, CSV. All of it is
// marked as a test, no other organization is affected, and all invariants hold.
func TestAYearOfATest(t *testing.T) {
	r, ledger, token := billed(t)
	const of, clock = "/v1/organizations/acme/", "acme/test-clock"
	period := calendar.PeriodAt(time.Now(), 1)
	at := func(instant time.Time) string { return fmt.Sprintf(`{"at":%q}`, instant.Format(time.RFC3339)) }
	ask := func(method, path, key, body string, status int) map[string]any {
		t.Helper()
		answered, answer := send(t, ledger, token, method, path, key, body)
		if answered != status {
			t.Fatalf("%s %s %s: %d %v", method, path, body, answered, answer)
		}
		return answer
	}
	ask("POST", clock+"/use", "", `{"bytes":1}`, http.StatusBadRequest) // it is no test yet
	if begun := ask("PUT", clock, "begin", `{}`, http.StatusOK); begun["test"] != true {
		t.Errorf("begun: %v", begun)
	}
	r.PublishEvent(contract.TopicTenants, contract.TypeProjectCreated, "acme", contract.ProjectCreated{Organization: "acme", Project: "shop", Name: "Shop"})
	key := "key_" + strings.Repeat("0a", 16)
	first := fmt.Sprintf(`{"bytes":900,"entries":7,"project":"shop","key":%q,"environment":"prod"}`, key)
	testenv.Eventually(t, waitTimeout, func() error {
		if status, used := send(t, ledger, token, "POST", clock+"/use", "first", first); status != http.StatusCreated {
			return fmt.Errorf("%d %v", status, used)
		}
		return nil
	})
	for range 2 { // none has an effect
		if used := ask("POST", clock+"/use", "first", first, http.StatusCreated); used["accepted"] != true ||
			used["remaining"] != 100.0 {
			t.Errorf("used: %v", used)
		}
	}
	refused := ask("POST", clock+"/use", "", `{"bytes":200,"project":"shop"}`, http.StatusCreated)
	_, why := get(t, ledger, token, of+"refusals?to=2100-01-01T00:00:00Z")
	if items, _ := why["items"].([]any); refused["rule"] != "quota" || len(items) != 1 || items[0].(map[string]any)["request_id"] != refused["id"] ||
		items[0].(map[string]any)["ended_by"] == nil {
		t.Errorf("refused: %v, why: %v", refused, why)
	}
	if upgraded := ask("PUT", "acme/subscription", "", `{"tier":"indie","quota":1000000}`, http.StatusOK); upgraded["state"] != "active" {
		t.Errorf("upgraded: %v", upgraded)
	}
	ask("PUT", "acme/budgets", "", fmt.Sprintf(`[{"key":%q,"bytes":905}]`, key), http.StatusOK)
	if beyond := ask("POST", clock+"/use", "", fmt.Sprintf(`{"bytes":6,"key":%q}`, key), http.StatusCreated); beyond["rule"] != "budget" {
		t.Errorf("beyond the budget: %v", beyond)
	}

	year := period.Start.AddDate(1, 0, 0)
	ask("PUT", clock, "", at(year), http.StatusOK)
	ask("PUT", clock, "", at(period.End), http.StatusBadRequest) // it never goes back
	if _, balance := get(t, ledger, token, of+"balance"); balance["test"] != true || balance["remaining"] != 1e6 || balance["state"] != "active" {
		t.Errorf("a year later: %v", balance)
	}
	_, statements := get(t, ledger, token, of+"statements")
	items, _ := statements["items"].([]any)
	if len(items) != 12 || items[11].(map[string]any)["consumed"] != 900.0 || items[11].(map[string]any)["test"] != true || items[0].(map[string]any)["expired"] != 1e6 {
		t.Errorf("%d statements: %v", len(items), items)
	}
	ask("POST", "acme/adjustments", "", fmt.Sprintf(`{"amount":250,"reason":"sent twice","period":%q}`, period.Start.Format(time.RFC3339)), http.StatusCreated)
	if csv := table(t, ledger, token, of+"statements/1"); !strings.Contains(csv, "1,test,") || strings.Count(csv, ",charge,") != 1 {
		t.Errorf("as CSV:\n%s", csv)
	}
	for _, part := range []string{"threshold/50", "threshold/80", "/exhausted/", "/restored/", "budget/key:" + key + "/", "/adjusted/"} {
		testenv.Eventually(t, waitTimeout, func() error {
			if events := r.awaitEvents(12); !contains(events, part) {
				return fmt.Errorf("no %s in %v", part, events)
			}
			return nil
		})
	}
	testenv.Eventually(t, waitTimeout, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if account := r.accounts["acme"]; account.State != contract.AccountSuspended {
			return fmt.Errorf("published as %+v", account)
		}
		return nil
	})
	r.verify()
	r.rebuild()
}
