package e2e

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/allinone/allinonetest"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	readreplica "github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

// Everything in one process, with a standby for heavy reads.
func TestAllInOne(t *testing.T) {
	modules, err := allinone.ModulesFromEnvironment()
	must(t, err)
	modules.Ledger.TierBootstrapperBytes = quotaBytes
	collector := tracingtest.New(t)
	exportTo(&modules, collector)
	database, metrics, dataDir := postgrestest.NewPair(t), freeAddress(t), t.TempDir()
	at := readreplica.Config{DatabaseURL: httpapi.Secret(database.Replica)}
	modules.Ingest.Replica, modules.Ledger.Replica, modules.Grouping.Replica, modules.Tenants.Replica = at, at, at, at
	app, err := allinone.New(t.Context(), allinone.Config{
		Listen: "127.0.0.1:0", DataDir: dataDir, DatabaseURL: httpapi.Secret(database.URL), Brokers: kafkatest.Brokers(t), Modules: modules,
		Telemetry: telemetry.Config{MetricsListen: metrics},
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	must(t, err)
	allinonetest.Run(t, app)
	env := app.Env()
	t.Run("billing", func(t *testing.T) { guide(t, "../../ledger/docs/billing.md", dataDir, "ask", 20) })
	t.Run("sending", func(t *testing.T) { sending(t, dataDir) })
	in := connect(t, env.BaseURL, env.CAFile, env.OperatorToken)
	scenario(t, in, nil)
	t.Run("replica", func(t *testing.T) { readByStandby(t, in, metrics) })
	t.Run("traces", func(t *testing.T) { traced(t, in, collector) })
}

// connect returns the scenario's client.
func connect(t *testing.T, base, caFile, operator string) installation {
	t.Helper()
	api, err := client.New(base, caFile, 32)
	must(t, err)
	t.Cleanup(api.Close)
	api.Through(func(next http.RoundTripper) http.RoundTripper { return openapitest.Remote(t, next) })
	return installation{api: api, operator: operator}
}

// envFile returns the path of a process's dev.env.
func envFile(dataDir string) string { return filepath.Join(dataDir, allinone.EnvFile) }
