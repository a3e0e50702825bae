package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
)

func TestJoinOpenAPI(t *testing.T) {
	whole := httpapi.OpenAPI{Version: "3.1.0", Info: map[string]string{"title": "t"}}
	for _, part := range []string{
		`{"components": {"schemas": {"A": {"type": "string"}}}}`,
		`{"paths": {"/v1/a": {"get": {}}}, "components": {"schemas": {"A": {"type":"string"}}, "headers": {"H": {}}}}`,
	} {
		if err := whole.Add([]byte(part)); err != nil {
			t.Fatal(err)
		}
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
