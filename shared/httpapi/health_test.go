package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
