package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/shared/httpapi"
)

// overview opens the overview of a project behind a gateway whose modules answer so.
func overview(t *testing.T, method string, modules map[gateway.Module]http.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	return open(t, method, "/console/overview?project=prj_1", modules)
}

// open opens a page behind such a gateway.
func open(t *testing.T, method, path string, modules map[gateway.Module]http.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	backends := map[gateway.Module]gateway.Backend{}
	for _, name := range gateway.Modules() {
		answer := modules[name]
		backends[name] = gateway.Local(answer, func() error { return nil }, func() []httpapi.Backlog { return nil })
	}
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Cookie", "session=1")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("If-None-Match", "x")
	w := httptest.NewRecorder()
	newGateway(t, backends).ServeHTTP(w, r)
	return w
}

// page is tenants' page with places for parts.
func page(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "none")
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		fmt.Fprint(w, text)
	}
}

const places = `<h1>Shop</h1><div data-part="logs"><p>No logs</p></div><div data-part="errors">No errors</div>` +
	`<div data-part="usage">No usage</div><div data-part="other">Other</div><p>&lt;div data-part="logs"></div></p>`

// part is what a module answers of its part.
func part(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "[%s %s %s%s%s]", r.Method, r.URL.RequestURI(), r.Header.Get("Cookie"), r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("If-None-Match"))
}

// The overview has the part of each module, which is asked as the reader. The text in its
// place stays where a module refuses, fails, or takes too long.
func TestOverview(t *testing.T) {
	for name, c := range map[string]struct {
		errors http.HandlerFunc
		want   string
	}{
		"whole":   {part, "[GET /console/errors/overview?project=prj_1 session=1]"},
		"refused": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "No errors"},
		"cut off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "No errors"},
		"slow":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "No errors"},
		"slower":  {func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) }, "No errors"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := overview(t, "GET", map[gateway.Module]http.HandlerFunc{
					gateway.Tenants: page(places), gateway.Ingest: part, gateway.Ledger: part, gateway.Grouping: c.errors,
				})
				for _, want := range []string{"<h1>Shop</h1>[GET /console/logs/overview?project=prj_1 session=1]", c.want, "[GET /console/usage/overview?project=prj_1 session=1]",
					`<div data-part="other">Other</div><p>&lt;div data-part="logs"></div></p>`} {
					if !strings.Contains(w.Body.String(), want) {
						t.Errorf("no %s in %s", want, w.Body)
					}
				}
				if w.Header().Get("Content-Security-Policy") != "none" || w.Header().Get("Content-Length") != "" || time.Since(began) > 2*time.Second {
					t.Errorf("after %s: %v", time.Since(began), w.Header())
				}
				time.Sleep(time.Hour) // until all have ended
			})
		})
	}
}

// Parts are for readers who get the page.
func TestOverviewWithoutAPage(t *testing.T) {
	asked := func(http.ResponseWriter, *http.Request) { t.Error("a module is asked for its part") }
	refused := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, places)
	}
	for method, answer := range map[string]http.HandlerFunc{"GET": refused, "HEAD": page(places), "POST": page(places)} {
		w := overview(t, method, map[gateway.Module]http.HandlerFunc{gateway.Tenants: answer, gateway.Ingest: asked, gateway.Ledger: asked, gateway.Grouping: asked})
		if !strings.Contains(w.Body.String(), "No logs") {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

// A page of an error group has the entry of a sample, which is asked for with the query of its place.
func TestPartOfAnErrorGroup(t *testing.T) {
	text := `<div data-part="entry" data-query="id=0-1&amp;time=2026-11-21T12%3A00%3A00Z">No entry</div>&lt;div data-part=&#34;entry&#34;&gt;x</div>`
	modules := map[gateway.Module]http.HandlerFunc{gateway.Grouping: page(text), gateway.Ingest: part}
	for path, want := range map[string]string{
		"/console/errors/grp_1?by=hour":  `[GET /console/logs/entry?id=0-1&time=2026-11-21T12%3A00%3A00Z session=1]&lt;div data-part=&#34;entry&#34;&gt;x</div>`,
		"/console/errors/rules":          text,
		"/console/errors/grp_1/activity": text,
	} {
		if got := open(t, "GET", path, modules).Body.String(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// The parts of modules elsewhere are asked for as well.
func TestOverviewOfRemotes(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(part))
	defer server.Close()
	backends := remotes(t, server, "", nil)
	backends[gateway.Tenants] = gateway.Local(page(places), func() error { return nil }, func() []httpapi.Backlog { return nil })
	r := httptest.NewRequestWithContext(context.Background(), "GET", "/console/overview?project=prj_1", nil)
	r.Header.Set("Cookie", "session=1")
	w := httptest.NewRecorder()
	newGateway(t, backends).ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), "[GET /console/errors/overview?project=prj_1 session=1]") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
