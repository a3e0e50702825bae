package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
)

// Public answers have a budget by client network for each kind: none
// uses up another kind's, or another network's.
func TestPublic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // refusals are paced
		router := publicRouter()
		for _, path := range []string{"/v1/openapi.json", "/v1/ingest/openapi.json", "/readyz", "/healthz", "/file"} {
			for code := http.StatusOK; code == http.StatusOK; {
				code = answerTo(router, path, "203.0.113.7:1").Code
			}
		}
		for _, budget := range []struct {
			paths []string
			want  int
		}{{[]string{"/v1/openapi.json", "/v1/ingest/openapi.json"}, 600}, {[]string{"/readyz", "/healthz"}, 600}, {[]string{"/file"}, 3000}} {
			for n := range budget.want {
				if code := answerTo(router, budget.paths[n%len(budget.paths)], "203.0.113.8:1").Code; code != http.StatusOK {
					t.Fatalf("request %d for %s is answered by %d", n, budget.paths, code)
				}
			}
			for _, path := range budget.paths {
				if answer := answerTo(router, path, "203.0.113.8:1"); answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
					t.Errorf("request %d for %s is answered by %d, Retry-After %q", budget.want, path, answer.Code, answer.Header().Get("Retry-After"))
				}
			}
		}
	})
}

// An internal probe is never refused; a client behind an internal proxy is.
func TestInternalProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		router := publicRouter()
		for _, peer := range []string{"127.0.0.1:1", "10.2.3.4:1", "192.168.1.1:1", "169.254.1.1:1", "[::1]:1", "[fd00::1]:1", "[::ffff:10.0.0.1]:1", "@"} {
			for n := range 700 {
				if code := answerTo(router, "/readyz", peer).Code; code != http.StatusOK {
					t.Fatalf("probe %d of %s is answered by %d", n, peer, code)
				}
			}
		}
		for range 600 {
			answerTo(router, "/readyz", "10.9.9.9:1", "203.0.113.9")
		}
		if code := answerTo(router, "/readyz", "10.9.9.9:1", "203.0.113.9").Code; code != http.StatusTooManyRequests {
			t.Errorf("a client behind a proxy is answered by %d", code)
		}
	})
}

func publicRouter() chi.Router {
	router := httpapi.NewRouter(httpapi.Options{
		Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Proxies: []netip.Prefix{netip.MustParsePrefix("10.9.9.9/32")},
	})
	httpapi.Health(router, func(context.Context) ([]httpapi.Backlog, error) { return nil, nil })
	httpapi.Describe(router, "ingest", []byte("{}"))
	router.With(httpapi.PublicFile).Get("/file", func(http.ResponseWriter, *http.Request) {})
	return router
}

func answerTo(router http.Handler, path, peer string, client ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = peer
	for _, address := range client {
		r.Header.Set("X-Forwarded-For", address)
	}
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, r)
	return answer
}
