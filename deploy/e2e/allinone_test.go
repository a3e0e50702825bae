package e2e

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// Everything in one process.
func TestAllInOne(t *testing.T) {
	modules, err := allinone.ModulesFromEnvironment()
	must(t, err)
	modules.Ledger.TierBootstrapperBytes = quotaBytes
	app, err := allinone.New(t.Context(), allinone.Config{
		Listen: "127.0.0.1:0", DataDir: t.TempDir(), DatabaseURL: httpapi.Secret(testenv.Postgres(t)), Brokers: testenv.Kafka(t), Modules: modules,
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	must(t, err)
	start(t, app)
	env := app.Env()
	scenario(t, connect(t, env.BaseURL, env.CAFile, env.OperatorToken), nil)
}

// start runs app until the test ends, and returns when it is ready. It must stop in order.
func start(t *testing.T, app *allinone.App) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("did not stop in order: %v", err)
		}
	})
	select {
	case <-app.Started():
	case err := <-stopped:
		stopped <- nil
		t.Fatal(errors.Join(errors.New("did not start"), err))
	}
}

// connect makes the client of the scenario.
func connect(t *testing.T, base, caFile, operator string) installation {
	t.Helper()
	api, err := client.New(base, caFile, 32)
	must(t, err)
	t.Cleanup(api.Close)
	return installation{api: api, operator: operator}
}

// envFile is where a process leaves how to reach it.
func envFile(dataDir string) string { return filepath.Join(dataDir, allinone.EnvFile) }
