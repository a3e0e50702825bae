package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/testenv"
)

// A period as in docs/billing.md: subscription, use, exhaustion,
// upgrade, the period's end, its statement, an adjustment, and all of
// it as CSV.
func TestAPeriodOfBilling(t *testing.T) {
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	r, ledger, token := billedBy(t, clock)
	const of = "/v1/organizations/acme/"

	r.Accept(logs("acme", 600))
	if _, balance := get(t, ledger, token, of+"balance?wait=true"); balance["remaining"] != 400.0 || balance["state"] != "active" {
		t.Errorf("used: %v", balance)
	}
	if _, dryRun := send(t, ledger, token, "POST", "acme/dry-run", "", `{"bytes":400}`); dryRun["accepted"] != true || dryRun["exhausts"] != true {
		t.Errorf("tried: %v", dryRun)
	}
	r.Accept(logs("acme", 400))
	_, balance := get(t, ledger, token, of+"balance?wait=true")
	if balance["state"] != "exhausted" {
		t.Errorf("exhausted: %v", balance)
	}

	period := calendar.PeriodAt(clock(), 1)
	refused := contract.QuotaRefused{Organization: "acme", Project: "acme-project", APIKey: "key", RequestID: "req_1", At: clock(), Bytes: 70, Quota: 1000,
		PeriodStart: period.Start, Requests: 1}
	r.PublishEvent(contract.TopicOutcomes, contract.TypeQuotaRefused, "acme", refused)
	testenv.Eventually(t, waitTimeout, func() error {
		_, why := get(t, ledger, token, of+"refusals")
		items, _ := why["items"].([]any)
		if len(items) != 1 || items[0].(map[string]any)["crossed_by"] == nil || items[0].(map[string]any)["ended_by"] == nil {
			return fmt.Errorf("why: %v", why)
		}
		return nil
	})

	const larger = `{"tier":"indie","quota":1000000}`
	if _, preview := send(t, ledger, token, "POST", "acme/simulation", "", larger); preview["after"].(map[string]any)["remaining"].(float64) < 1 {
		t.Errorf("previewed: %v", preview)
	}
	for range 2 {
		if status, plan := send(t, ledger, token, "PUT", "acme/subscription", "upgrade", larger); status != http.StatusOK || plan["state"] != "active" {
			t.Errorf("upgraded: %d %v", status, plan)
		}
	}

	ahead.Store(int64(time.Until(period.End.Add(2 * time.Minute))))
	statement := awaitStatement(t, ledger, token)
	if statement["consumed"] != 1000.0 || statement["overage"] != 0.0 || statement["closing"] != 0.0 || statement["allowance"] != 1000.0 {
		t.Errorf("statement: %v", statement)
	}
	adjustment := fmt.Sprintf(`{"amount":250,"reason":"sent twice by our agent","period":%q}`, period.Start.Format(time.RFC3339))
	for range 2 {
		if status, made := send(t, ledger, token, "POST", "acme/adjustments", "credit", adjustment); status != http.StatusCreated || made["of_period"] == nil {
			t.Errorf("adjusted: %d %v", status, made)
		}
	}
	if csv := table(t, ledger, token, of+"statements/1"); strings.Count(csv, ",charge,") != 1 || !strings.Contains(csv, "1,consumed,,,,,,,,1000\n") {
		t.Errorf("as CSV:\n%s", csv)
	}
	for _, part := range []string{"threshold/50", "threshold/80", "threshold/100", "/exhausted/", "/restored/", "/closed", "/statement", "/adjusted/"} {
		events := r.awaitEvents(8)
		if n := strings.Count(strings.Join(events, " "), part); n != 1 {
			t.Errorf("%d events are %s: %v", n, part, events)
		}
	}
	r.verify()
	r.rebuild()
}

// awaitStatement waits for the first statement of acme.
func awaitStatement(t *testing.T, ledger *app.App, token string) (statement map[string]any) {
	t.Helper()
	testenv.Eventually(t, waitTimeout, func() error {
		status, found := get(t, ledger, token, "/v1/organizations/acme/statements/1")
		if statement = found; status != http.StatusOK {
			return fmt.Errorf("%d %v", status, found)
		}
		return nil
	})
	return statement
}

// table reads a path as CSV.
func table(t *testing.T, ledger *app.App, token, path string) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "text/csv")
	recorder := httptest.NewRecorder()
	ledger.Handler().ServeHTTP(recorder, request)
	text, err := io.ReadAll(recorder.Body)
	if err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("%d %s (%v)", recorder.Code, text, err)
	}
	return string(text)
}
