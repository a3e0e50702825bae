package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A client gets its preferred type; without a preference, the
// first one offered.
func TestPreferred(t *testing.T) {
	for accept, want := range map[string]string{
		"": TypeJSON, "*/*": TypeJSON, "application/json": TypeJSON, "application/x-ndjson": TypeLines, "application/json;q=0.5, application/x-ndjson": TypeLines,
		"application/x-ndjson;q=0": TypeJSON, "application/json, application/x-ndjson;q=0.9": TypeJSON, "Application/X-NDJSON; charset=utf-8": TypeLines,
		"rubbish;;": TypeJSON, "text/csv": TypeCSV, "text/html, text/csv;q=0.1": TypeCSV, "text/csv;q=0.4, application/x-ndjson;q=0.5": TypeLines,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", accept)
		if got := Preferred(r, TypeJSON, TypeLines, TypeCSV); got != want {
			t.Errorf("%q: %s, want %s", accept, got, want)
		}
	}
}
