package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
)

// A client with the current document gets a 304.
func TestDocument(t *testing.T) {
	serve := httpapi.Document([]byte(`{"openapi": "3.1.0"}`))
	ask := func(tag string) *httptest.ResponseRecorder {
		recorder, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/openapi.json", nil)
		request.Header.Set("If-None-Match", tag)
		serve(recorder, request)
		return recorder
	}
	first := ask(`"another"`)
	if first.Code != 200 || first.Body.String() != `{"openapi": "3.1.0"}` || first.Header().Get("Cache-Control") != "public, max-age=300" ||
		first.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", first.Code, first.Header(), first.Body)
	}
	if again := ask(first.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("again: %d %s", again.Code, again.Body)
	}
}
