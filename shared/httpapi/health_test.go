package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
)

// A service that catches up is ready, and says how far it is.
func TestReadyWhileCatchingUp(t *testing.T) {
	for want, behind := range map[string][]httpapi.Backlog{
		`{"status":"ready"}`: nil,
		`{"status":"catching_up","behind":[{"part":"the log store","done":0.42,"seconds_left":25},{"part":"the rest","done":0}]}`: {
			{Part: "the log store", Done: 0.42, SecondsLeft: 25}, {Part: "the rest"},
		},
	} {
		router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
		httpapi.Health(router, func(context.Context) ([]httpapi.Backlog, error) { return behind, nil })
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if body := strings.TrimSpace(recorder.Body.String()); recorder.Code != 200 || body != want {
			t.Errorf("%d %s, want %s", recorder.Code, body, want)
		}
	}
}

// Clients see which parts are not ready; the reason is only logged.
func TestReadyShowsNothingOfTheInside(t *testing.T) {
	why := errors.New("dial tcp 10.1.2.3:5432: connection refused")
	for want, err := range map[string]error{
		"Not ready yet: the database, the log.": errors.Join(httpapi.Part("the database", why), nil, fmt.Errorf("w: %w", httpapi.Part("the log", why))),
		"Not ready yet.":                        why,
	} {
		var logged bytes.Buffer
		router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil)), Clock: time.Now})
		httpapi.Health(router, func(context.Context) ([]httpapi.Backlog, error) { return nil, err })
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if recorder.Code != 500 || recorder.Header().Get("Retry-After") != "1" || strings.Contains(recorder.Body.String(), "10.1.2.3") {
			t.Errorf("%d %v %s", recorder.Code, recorder.Header(), recorder.Body)
		}
		if detail := members(t, recorder)["detail"]; detail != want {
			t.Errorf("it says %q, want %q", detail, want)
		}
		if !strings.Contains(logged.String(), "10.1.2.3") {
			t.Errorf("the log does not say why: %s", &logged)
		}
	}
	if httpapi.Part("the log", nil) != nil {
		t.Error("a part without a failure is one")
	}
}

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
