package tracingtest

import (
	"net/http"
	"net/http/httptest"
	"regexp"
)

// Exemplars returns the trace ids that a handler of metrics shows
// beside a histogram's buckets in OpenMetrics.
func Exemplars(metrics http.Handler, histogram string) (traces []string) {
	scrape := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	scrape.Header.Set("Accept", "application/openmetrics-text")
	shown := httptest.NewRecorder()
	metrics.ServeHTTP(shown, scrape)
	bucket := regexp.MustCompile(`(?m)^` + histogram + `_bucket\{.*\} \d+ # \{trace_id="([0-9a-f]{32})"\} `)
	for _, found := range bucket.FindAllStringSubmatch(shown.Body.String(), -1) {
		traces = append(traces, found[1])
	}
	return traces
}
