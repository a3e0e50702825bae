package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

// The metrics count accepted, rejected and refused requests without
// naming tenants.
func TestMetrics(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key, registry := r.key("org_a", "prj_a", nil), telemetry.New()
	p := r.start(func(c *app.Config) { c.Telemetry.Registry = registry })
	body := bodyOf(entry("first"), entry("second"), `{"timestamp":"2026-01-01T00:00:00Z","level":"loud","message":"third"}`)
	if a := p.post(key, body, "Idempotency-Key", "secret-name"); a.number("processed") != 2 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	p.post("weir_nobody", body)
	testenv.Eventually(t, func() error {
		recorder := httptest.NewRecorder()
		registry.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		text := recorder.Body.String()
		for _, tenant := range []string{"org_a", "prj_a", key[:13], "secret-name"} {
			if strings.Contains(text, tenant) {
				t.Fatalf("the metrics name %q:\n%s", tenant, text)
			}
		}
		for _, line := range []string{
			`weir_ingest_accepted_entries_total{service="ingest"} 2`,
			`weir_ingest_rejected_entries_total{service="ingest"} 1`,
			`weir_ingest_faults_total{code="invalid_level",service="ingest"} 1`,
			`weir_ingest_faults_total{code="missing_field",service="ingest"} 0`,
			`weir_ingest_refused_requests_total{code="invalid_api_key",service="ingest"} 1`,
			`weir_ingest_quota_organizations{service="ingest"} 1`,
			`weir_ingest_rate_buckets{service="ingest"} 2`,
			`weir_ingest_client_buckets{service="ingest"} 1`,
			`weir_ingest_idempotency_keys{service="ingest"} 1`,
			`weir_ingest_in_flight_bytes{credential="key",service="ingest",size="small"} 0`,
			`weir_ingest_in_flight_bytes{credential="none",service="ingest",size="large"} 0`,
			`weir_ingest_in_flight_bodies{credential="key",service="ingest"} 0`,
			`weir_ingest_waiting_bodies{credential="key",service="ingest"} 0`,
			`weir_ingest_throttled_bodies{credential="key",service="ingest"} 0`,
			`weir_ingest_throttled_seconds_total{credential="key",service="ingest"} 0`,
			`weir_ingest_refused_bodies_total{credential="key",reason="share",service="ingest"} 0`,
			`weir_ingest_refused_bodies_total{credential="key",reason="slow",service="ingest"} 0`,
			`weir_watched_keys{service="ingest"} 1`,
			`weir_missed_key_uses_total{service="ingest"} 0`,
			`weir_ingest_searches_running{service="ingest"} 0`,
			`weir_ingest_searches_waiting{service="ingest"} 0`,
			`weir_ingest_searches_refused_total{reason="answers",service="ingest"} 0`,
			`weir_ingest_answer_bytes{service="ingest"} 0`,
			`weir_ingest_tails_running{service="ingest"} 0`,
			`weir_ingest_tails_refused_total{reason="share",service="ingest"} 0`,
			`weir_ingest_tails_skipped_entries_total{reason="slow",service="ingest"} 0`,
			`weir_ingest_answers_cut_total{service="ingest"} 0`,
			`weir_ingest_search_incomplete_total{service="ingest"} 0`,
			`weir_ingest_small_blocks_total{service="ingest"} 1`,
			`weir_ingest_merged_blocks_total{service="ingest"} 0`,
			`weir_ingest_merges_late_seconds{service="ingest"} 0`,
			`weir_ingest_ruled_entries_total{kind="redact",service="ingest"} 0`,
			`weir_ingest_ruled_projects{service="ingest"} 0`,
			`weir_ingest_unreadable_rules{service="ingest"} 0`,
			`weir_bus_published_records_total{service="ingest"} 3`, // the entries, that their key was used, and that the topic of rules was compared
			`weir_bus_applied_records_total{group="ingest.log-store",service="ingest",topic="weir.logs.v1"} 1`,
			`weir_http_request_duration_seconds_count{method="POST",route="/v1/logs",service="ingest",status="2xx"} 1`,
		} {
			if !strings.Contains(text, line+"\n") {
				return fmt.Errorf("%q is missing in\n%s", line, text)
			}
		}
		return nil
	})
}
