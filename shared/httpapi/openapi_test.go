package httpapi_test

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
)

func TestJoinOpenAPI(t *testing.T) {
	whole := `{"openapi": "3.1.0", "info": {"title": "t"}, "paths": {}, "components": {"schemas": {"A": {"type": "string"}}}}`
	part := `{"paths": {"/v1/a": {"get": {}}}, "components": {"schemas": {"A": {"type":"string"}}, "headers": {"H": {}}}}`
	joined, err := httpapi.JoinOpenAPI([]byte(whole), []byte(part))
	want := `{"openapi":"3.1.0","info":{"title":"t"},"paths":{"/v1/a":{"get":{}}},"components":{"headers":{"H":{}},"schemas":{"A":{"type":"string"}}}}`
	if err != nil || string(joined) != want {
		t.Errorf("joined: %s, %v", joined, err)
	}
	for _, other := range []string{`{"components": {"schemas": {"A": {"type": "number"}}}}`, `{`} {
		if joined, err := httpapi.JoinOpenAPI([]byte(whole), []byte(other)); err == nil {
			t.Errorf("%s: joined to %s", other, joined)
		}
	}
	twice := `{"paths": {"/v1/a": {"post": {}}}}`
	if _, err := httpapi.JoinOpenAPI([]byte(whole), []byte(part), []byte(twice)); err == nil || !strings.Contains(err.Error(), "/v1/a") {
		t.Errorf("a path twice: %v", err)
	}
}
