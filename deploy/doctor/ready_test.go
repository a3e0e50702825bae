package doctor

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/httpapi"
)

// A weir run whose broker answers but refuses records is found.
func TestReadinessIsFound(t *testing.T) {
	var refuses error
	router := chi.NewRouter()
	httpapi.Health(router, func(context.Context) ([]httpapi.Backlog, error) { return nil, httpapi.Part("broker", refuses) })
	server := httptest.NewServer(router)
	defer server.Close()
	config := Config{DataDir: t.TempDir()}
	env := allinone.DevEnv{BaseURL: server.URL + "/v1"}
	must(t, env.Write(filepath.Join(config.DataDir, allinone.EnvFile)))
	broker, err := kafka.Start(kafka.Config{Dir: filepath.Join(config.DataDir, "kafka"), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer broker.Close()
	for want, err := range map[Level]error{OK: nil, Fail: errors.New("no space left")} {
		refuses = err
		e := &examination{Config: config.orDefault()}
		e.bus(t.Context())
		at := slices.IndexFunc(e.report.Findings, func(f Finding) bool { return f.Check == "ready" })
		if at < 0 {
			t.Fatalf("not asked: %+v", e.report.Findings)
		}
		if f := e.report.Findings[at]; f.Level != want || (want == Fail) != strings.Contains(f.Seen, "broker") {
			t.Errorf("found %+v, want %s", f, want)
		}
	}
}
