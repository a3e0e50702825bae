package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

// Metrics count what was grouped, and name no tenant.
func TestMetrics(t *testing.T) {
	r := newRig(t)
	registry := telemetry.New()
	r.config.Telemetry.Registry, r.config.NewGroupsPerHour = registry, 1
	r.project("acme", "shop")
	r.start()
	r.Accept(logs("acme", "shop", 2, failure("ErrorA", 0), failure("ErrorB", 0)), logs("acme", "shop", 0, `{"level":"info","message":"fine"}`))
	testenv.Eventually(t, func() error {
		recorder := httptest.NewRecorder()
		registry.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		text := recorder.Body.String()
		for _, tenant := range []string{"acme", "shop"} {
			if strings.Contains(text, tenant) {
				t.Fatalf("the metrics tell of %q:\n%s", tenant, text)
			}
		}
		for _, line := range []string{
			`weir_grouping_errors_total{service="grouping"} 2`,
			`weir_grouping_groups_created_total{service="grouping"} 2`, // one is the overflow
			`weir_grouping_overflow_errors_total{service="grouping"} 1`,
			`weir_grouping_reads_running{service="grouping"} 0`,
			`weir_bus_relayed_records_total{relay="grouping.facts",service="grouping"} 2`,
			`weir_bus_applied_records_total{group="grouping.clusters",service="grouping",topic="weir.logs.v1"} 2`,
		} {
			if !strings.Contains(text, line+"\n") {
				return fmt.Errorf("%q is missing in\n%s", line, text)
			}
		}
		return nil
	})
}
