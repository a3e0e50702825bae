package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
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

// open are the routes that need no credential.
func open() map[string]bool {
	return map[string]bool{
		"GET /healthz": true, "GET /readyz": true, "GET /v1/openapi.json": true, "GET /v1/tenants/openapi.json": true,
		"POST /v1/leak-reports": true, // it is signed
	}
}

func walk(t *testing.T, p *process, visit func(route string)) {
	t.Helper()
	routes, ok := p.Handler().(chi.Routes)
	if !ok {
		t.Fatalf("the handler %T has no routes to walk", p.Handler())
	}
	err := chi.Walk(routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !strings.HasPrefix(route, "/console") { // pages are walked by tests of their own
			visit(method + " " + route)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
