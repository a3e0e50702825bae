package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/tracing/otlp"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

// Only a request with a sampled trace is an exemplar of the duration.
func TestExemplars(t *testing.T) {
	for ratio, want := range map[float64]int{0: 0, 1: 1} {
		registry, collector := telemetry.New(), tracingtest.New(t)
		tracer, err := otlp.Config{Endpoint: collector.URL, Ratio: ratio}.Open("ledger", nil, testenv.Logger(t))
		if err != nil {
			t.Fatal(err)
		}
		router := httpapi.NewRouter(httpapi.Options{
			Logger: testenv.Logger(t), Clock: time.Now, Tracer: tracer, Observe: httpapi.NewMetrics(registry.For("ledger")).Observe,
		})
		router.Get("/", func(http.ResponseWriter, *http.Request) {})
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		tracer.Close()
		shown, spans := tracingtest.Exemplars(registry.Handler(), "weir_http_request_duration_seconds"), collector.Spans()
		if len(shown) != want || len(spans) != want || want == 1 && shown[0] != spans[0].Trace {
			t.Errorf("sampled by %v: exemplars %q of %+v", ratio, shown, spans)
		}
	}
}

// Requests are counted by route, method and class of status; client
// input is never a label.
func TestMetrics(t *testing.T) {
	registry := telemetry.New()
	metrics := httpapi.NewMetrics(registry.For("ledger"))
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now, Observe: metrics.Observe})
	router.Get("/v1/things/{thing}", func(http.ResponseWriter, *http.Request) {})
	router.Post("/v1/things", httpapi.Handle(func(http.ResponseWriter, *http.Request) error { panic("broken") }))
	for _, request := range []*http.Request{
		httptest.NewRequest(http.MethodGet, "/v1/things/org_secret", nil),
		httptest.NewRequest(http.MethodPost, "/v1/things", nil),
		httptest.NewRequest(http.MethodGet, "/v1/made-up", nil),
		httptest.NewRequest("MADEUP", "/v1/things/org_secret", nil),
	} {
		router.ServeHTTP(httptest.NewRecorder(), request)
	}
	shown := httptest.NewRecorder()
	registry.Handler().ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, labels := range []string{
		`method="GET",route="/v1/things/{thing}",service="ledger",status="2xx"`,
		`method="POST",route="/v1/things",service="ledger",status="5xx"`,
		`method="GET",route="",service="ledger",status="4xx"`,
		`method="other",route="",service="ledger",status="4xx"`,
	} {
		if line := "weir_http_request_duration_seconds_count{" + labels + "} 1\n"; !strings.Contains(shown.Body.String(), line) {
			t.Errorf("%q is missing in\n%s", line, shown.Body)
		}
	}
	for _, secret := range []string{"org_secret", "made-up", "MADEUP"} {
		if strings.Contains(shown.Body.String(), secret) {
			t.Errorf("the metrics show %q", secret)
		}
	}
}
