package app_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

// scrape returns the current metrics.
func scrape(registry *telemetry.Registry) string {
	recorder := httptest.NewRecorder()
	registry.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}

// The metrics show the ledger's work and any broken invariant, without tenants.
func TestMetrics(t *testing.T) {
	r := newRig(t)
	registry := telemetry.New()
	r.config.Telemetry.Registry = registry
	process, _ := r.start()
	r.create("acme", "indie")
	r.awaitAccount("acme")
	r.Accept(logs("acme", 10), logs("acme", 20))
	r.awaitCounted()
	get(t, process, r.token("acme", "billing:read"), "/v1/organizations/acme/balance")
	shows := func(lines ...string) {
		t.Helper()
		testenv.Eventually(t, waitTimeout, func() error {
			text := scrape(registry)
			for _, line := range lines {
				if !strings.Contains(text, line) {
					return fmt.Errorf("%q is missing in\n%s", line, text)
				}
			}
			return nil
		})
	}
	unbroken := fmt.Sprintf("weir_ledger_violations_total{invariant=%q,service=\"ledger\"} 0\n", ledger.BalanceIsTransfers)
	shows(unbroken,
		`weir_bus_applied_records_total{group="ledger.quota",service="ledger",topic="weir.logs.v1"} 2`,
		`weir_bus_lag_records{group="ledger.quota",partition="0",service="ledger",topic="weir.logs.v1"} 0`,
		`weir_bus_relay_lag_seconds{relay="`, `weir_bus_published_records_total{service="ledger"} `,
		`weir_ledger_check_rounds_total{service="ledger"} `, `weir_ledger_verified_offset{partition="`,
		`weir_ledger_sealed_timestamp_seconds{service="ledger"} `,
		`weir_http_request_duration_seconds_count{method="GET",route="/v1/organizations/{organization}/balance",service="ledger",status=`)
	r.tamper(`UPDATE books SET grant_left = grant_left - 1, consumed = consumed + 1 WHERE consumed > 0`)
	r.Accept(logs("acme", 30))
	testenv.Eventually(t, waitTimeout, func() error { // repeated while earlier ranges are still being checked
		if strings.Contains(scrape(registry), unbroken) {
			return errors.New("no violation is counted")
		}
		return nil
	})
	if text := scrape(registry); strings.Contains(text, "acme") {
		t.Errorf("the metrics name tenants:\n%s", text)
	}
}
