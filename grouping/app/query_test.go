package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping/app"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

// shop is a process that has grouped a few errors:
// A at second 0 and 100, B at 10, C at 20, D at 20.
func shop(t *testing.T) (process *app.App, key string) {
	r := newRig(t)
	key = r.project("acme", "shop")
	_ = r.project("acme", "blog")
	process, _ = r.start()
	seen := func(typ, level, environment string, second int) string {
		return entry(time.Duration(second)*time.Second, level, environment, map[string]any{"type": typ, "message": "order 7 lost in Straße", "stack_trace": stack(typ)})
	}
	r.Accept(logs("acme", "shop", 5,
		seen("ErrorA", "error", "", 0), seen("ErrorA", "fatal", "dev", 100), seen("ErrorB", "warn", "", 10),
		seen("ErrorC", "error", "stage", 20), seen("ErrorD", "info", "", 20)),
		logs("acme", "blog", 1, seen("ErrorE", "error", "", 0)))
	r.awaitApplied()
	awaitReady(t, process)
	awaitKeys(t, process, key)
	return process, key
}

// An invalid filter is refused by name, with a
// way out: to ignore it would show too much.
func TestRefusals(t *testing.T) {
	process, key := shop(t)
	id := list(t, process, key, "shop", "").Items[0].ID
	for _, test := range []struct{ path, pointer string }{
		{"/v1/projects/shop/error-groups?levels=error", "?levels"},
		{"/v1/projects/shop/error-groups?status=open", "?status"},
		{"/v1/projects/shop/error-groups?status=resolved&status=ignored", "?status"},
		{"/v1/projects/shop/error-groups?level=Error", "?level"},
		{"/v1/projects/shop/error-groups?level=", "?level"},
		{"/v1/projects/shop/error-groups?from=yesterday", "?from"},
		{"/v1/projects/shop/error-groups?from=2026-11-21T12:00:00%2B02:00", "?from"},
		{"/v1/projects/shop/error-groups?to=2026-02-30T12:00:00Z", "?to"},
		{"/v1/projects/shop/error-groups?q=%20%00%2C", "?q"},
		{"/v1/projects/shop/error-groups?q=" + strings.Repeat("a+", 1000), "?q"},
		{"/v1/projects/shop/error-groups?limit=0", "?limit"},
		{"/v1/projects/shop/error-groups?limit=1001", "?limit"},
		{"/v1/projects/shop/error-groups?cursor=x", "?cursor"},
		{"/v1/projects/shop/error-groups?cursor=" + "eyJsIjoiMjAyNi0xMS0yMVQxMjowMDowMFoiLCJpIjoiXHUwMDAwIn0", "?cursor"}, // {"l":…,"i":"\u0000"}
		{"/v1/error-groups/" + id + "?limit=1", "?limit"},
	} {
		var problem page
		status := get(t, process, key, test.path, &problem)
		if status != http.StatusBadRequest || len(problem.Errors) != 1 || problem.Errors[0].Pointer != test.pointer || problem.Errors[0].Fix == "" {
			t.Errorf("%s answered %d %+v, want a 400 that names %s", test.path, status, problem, test.pointer)
		}
	}
}

// The document describes every route of the API, and no other.
func TestOpenAPI(t *testing.T) {
	r := newRig(t)
	process, _ := r.start()
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	for _, path := range []string{"/v1/openapi.json", "/v1/grouping/openapi.json"} {
		if status := get(t, process, "", path, &document); status != http.StatusOK || document.OpenAPI != "3.1.0" {
			t.Errorf("%s answered %d with version %q", path, status, document.OpenAPI)
		}
	}
	described := 0
	for _, methods := range document.Paths {
		described += len(methods)
	}
	err := chi.Walk(process.Handler().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !strings.HasPrefix(route, "/v1/") || strings.HasSuffix(route, "openapi.json") {
			return nil
		}
		if _, ok := document.Paths[route][strings.ToLower(method)]; !ok {
			t.Errorf("%s %s is not described", method, route)
		}
		described--
		return nil
	})
	if err != nil || described != 0 {
		t.Errorf("%d operations are described that do not exist: %v", described, err)
	}
}

// Metrics count what was grouped, and name no tenant.
func TestMetrics(t *testing.T) {
	r := newRig(t)
	registry := telemetry.New()
	r.config.Telemetry.Registry, r.config.NewGroupsPerHour = registry, 1
	r.project("acme", "shop")
	r.start()
	r.Accept(logs("acme", "shop", 2, failure("ErrorA", 0), failure("ErrorB", 0)), logs("acme", "shop", 0, `{"level":"info","message":"fine"}`))
	testenv.Eventually(t, func() error {
		recorder := httptest.NewRecorder()
		registry.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		text := recorder.Body.String()
		for _, tenant := range []string{"acme", "shop"} {
			if strings.Contains(text, tenant) {
				t.Fatalf("the metrics tell of %q:\n%s", tenant, text)
			}
		}
		for _, line := range []string{
			`weir_grouping_errors_total{service="grouping"} 2`,
			`weir_grouping_groups_created_total{service="grouping"} 2`, // one is the overflow
			`weir_grouping_overflow_errors_total{service="grouping"} 1`,
			`weir_grouping_reads_running{service="grouping"} 0`,
			`weir_bus_relayed_records_total{relay="grouping.facts",service="grouping"} 2`,
			`weir_bus_applied_records_total{group="grouping.clusters",service="grouping",topic="weir.logs.v1"} 2`,
		} {
			if !strings.Contains(text, line+"\n") {
				return fmt.Errorf("%q is missing in\n%s", line, text)
			}
		}
		return nil
	})
}
