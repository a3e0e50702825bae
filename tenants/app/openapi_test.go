package app_test

import (
	"strings"
	"testing"
)

// The description has every route that needs a credential, and no other.
func testOpenAPIMatchesRoutes(t *testing.T, p *process) {
	got := p.call(t, "", "GET", "/v1/openapi.json", "")
	paths, _ := got.body["paths"].(map[string]any)
	described := map[string]bool{}
	for path, operations := range paths {
		for method := range operations.(map[string]any) {
			described[strings.ToUpper(method)+" "+path] = true
		}
	}
	if got.status != 200 || got.body["openapi"] != "3.1.0" || len(described) == 0 {
		t.Fatalf("got %d with %d operations", got.status, len(described))
	}
	walk(t, p, func(route string) {
		if !open()[route] && !described[route] {
			t.Errorf("%s is not described", route)
		}
		delete(described, route)
	})
	for route := range described {
		t.Errorf("%s is described and not there", route)
	}
}
