package http

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/ingest/internal/tails"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// newRoutes are those of ingest with one API key, and one entry to be found.
func newRoutes(t *testing.T) http.Handler {
	t.Helper()
	in := newIntake(t, nothing{}, plenty)
	browsers, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_2", State: contract.CredentialActive, Origins: []string{shop}})
	testenv.Must(t, err)
	testenv.Must(t, in.Service.Credentials.Apply(contract.CredentialKey("another"), browsers))
	credentials := identity.NewCredentials(in.Service.Clock)
	value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1", Project: "prj_1", State: contract.CredentialActive})
	if err != nil || credentials.Apply(contract.CredentialKey(secret), value) != nil {
		t.Fatal(err)
	}
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: in.Service.Clock})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: in.Service.Clock})
	directory := identity.NewDirectory()
	found := &searches.Service{Searches: &tape{n: 1}, Directory: directory}
	hub := tails.New(tails.Config{Directory: directory, Viewers: 1, Work: time.Second, Clock: in.Service.Clock})
	testenv.Run(t, func(ctx context.Context) error { return hub.Run(ctx, readNothing, nil) })
	Mount(router, guard, in, &Logs{Service: found, Clock: in.Service.Clock},
		&Tails{Hub: hub, Service: found, Guard: guard, Clock: in.Service.Clock, Longest: 20 * time.Millisecond}, new(Saved), new(Rejected), new(Rules))
	return routetest.Handler(router)
}

// readNothing reads a log in which nothing comes.
func readNothing(ctx context.Context, begun func()) error {
	begun()
	<-ctx.Done()
	return ctx.Err()
}

// What is sent and what is found need a key; the description does not.
func TestRoutes(t *testing.T) {
	routes := newRoutes(t)
	for _, c := range []struct {
		method, path, key string
		want              int
	}{
		{http.MethodPost, "/v1/logs", secret, http.StatusOK},
		{http.MethodPost, "/v1/logs", "", http.StatusUnauthorized},
		{http.MethodPost, "/v1/otlp/v1/logs", secret, http.StatusOK},
		{http.MethodPost, "/v1/otlp/v1/logs", "", http.StatusUnauthorized},
		{http.MethodOptions, "/v1/logs", "", http.StatusNoContent},
		{http.MethodOptions, "/v1/otlp/v1/logs", "", http.StatusNoContent},
		{http.MethodOptions, "/v1/loki/api/v1/push", "", http.StatusNoContent},
		{http.MethodOptions, "/v1/elastic/_bulk", "", http.StatusNoContent},
		{http.MethodPost, "/v1/loki/api/v1/push", secret, http.StatusNoContent},
		{http.MethodPost, "/v1/loki/api/v1/push", "", http.StatusUnauthorized},
		{http.MethodPost, "/v1/elastic/_bulk", secret, http.StatusOK},
		{http.MethodPut, "/v1/elastic/_bulk", secret, http.StatusOK},
		{http.MethodPost, "/v1/elastic/_bulk", "", http.StatusUnauthorized},
		{http.MethodGet, "/v1/logs", secret, http.StatusOK},
		{http.MethodGet, "/v1/logs", "", http.StatusUnauthorized},
		{http.MethodGet, "/v1/logs/tail", secret, http.StatusOK},
		{http.MethodHead, "/v1/logs/tail", secret, http.StatusOK},
		{http.MethodGet, "/v1/logs/tail", "", http.StatusUnauthorized},
		{http.MethodGet, "/v1/openapi.json", "", http.StatusOK},
		{http.MethodGet, "/v1/ingest/openapi.json", "", http.StatusOK},
	} {
		text := body(1)
		if strings.HasSuffix(c.path, "_bulk") {
			text = []byte("{\"create\":{}}\n{\"message\":\"a\"}\n")
		}
		request := newPost(bytes.NewReader(text), "X-Api-Key", c.key)
		request.Method, request.URL.Path = c.method, c.path
		request.Header.Set("Origin", shop)
		answer := httptest.NewRecorder()
		if routes.ServeHTTP(answer, request); answer.Code != c.want {
			t.Errorf("%s %s with the key %q: %d %s, want %d", c.method, c.path, c.key, answer.Code, answer.Body, c.want)
		}
	}
}
