package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
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

func TestJoinOpenAPI(t *testing.T) {
	whole := httpapi.OpenAPI{Version: "3.1.0", Info: map[string]string{"title": "t"}}
	for _, part := range []string{
		`{"components": {"schemas": {"A": {"type": "string"}}}}`,
		`{"paths": {"/v1/a": {"get": {}}}, "components": {"schemas": {"A": {"type":"string"}}, "headers": {"H": {}}}}`,
	} {
		testenv.Must(t, whole.Add([]byte(part)))
	}
	joined, err := json.Marshal(whole)
	want := `{"openapi":"3.1.0","info":{"title":"t"},"paths":{"/v1/a":{"get":{}}},"components":{"headers":{"H":{}},"schemas":{"A":{"type":"string"}}}}`
	if err != nil || string(joined) != want {
		t.Errorf("joined: %s, %v", joined, err)
	}
	for _, other := range []string{`{"components": {"schemas": {"A": {"type": "number"}}}}`, `{`} {
		if err := whole.Add([]byte(other)); err == nil {
			t.Errorf("%s was added", other)
		}
	}
	if err := whole.Add([]byte(`{"paths": {"/v1/a": {"post": {}}}}`)); err == nil || !strings.Contains(err.Error(), "/v1/a") {
		t.Errorf("a path twice: %v", err)
	}
}
