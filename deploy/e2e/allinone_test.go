package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/allinone/allinonetest"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	readreplica "github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/port"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

// Everything in one process, with a standby for heavy reads.
func TestAllInOne(t *testing.T) {
	kafkatest.Parallel(t)
	modules, err := allinone.ModulesFromEnvironment()
	testenv.Must(t, err)
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
	testenv.Must(t, err)
	allinonetest.Run(t, app)
	env := app.Env()
	t.Run("billing", func(t *testing.T) { guide(t, "../../ledger/docs/billing.md", dataDir, "ask", 20) })
	t.Run("sending", func(t *testing.T) { sending(t, dataDir) })
	t.Run("terminal", func(t *testing.T) { inTerminal(t, dataDir) })
	t.Run("assistant", func(t *testing.T) { assisted(t, dataDir) })
	in := connect(t, env.BaseURL, env.CAFile, env.OperatorToken)
	scenario(t, in, nil)
	t.Run("replica", func(t *testing.T) { readByStandby(t, in, metrics) })
	t.Run("traces", func(t *testing.T) { traced(t, in, collector) })
}

// connect returns the scenario's client.
func connect(t *testing.T, base, caFile, operator string) installation {
	t.Helper()
	api, err := client.New(base, caFile, 32)
	testenv.Must(t, err)
	t.Cleanup(api.Close)
	api.Through(func(next http.RoundTripper) http.RoundTripper { return openapitest.Remote(t, next) })
	return installation{api: api, operator: operator}
}

// envFile returns the path of a process's dev.env.
func envFile(dataDir string) string { return filepath.Join(dataDir, allinone.EnvFile) }

func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := port.Free()
	testenv.Must(t, err)
	return fmt.Sprintf("127.0.0.1:%d", free)
}

// backends returns testenv's backends, as variables of a process.
func backends(t *testing.T) map[string]string {
	t.Helper()
	brokers := ""
	for _, address := range kafkatest.Brokers(t) {
		brokers += "," + address
	}
	return map[string]string{
		"WEIR_DATABASE_URL": postgrestest.URL(t), "WEIR_BROKERS": brokers[1:],
		"WEIR_TIER_BOOTSTRAPPER_BYTES": fmt.Sprint(quotaBytes),
	}
}

// readByStandby reads until a standby has answered readers of each module, in
// the process that shows its metrics at an address: one that is slow is passed
// over for a while.
func readByStandby(t *testing.T, in installation, metrics string) {
	listed := in.tenant(t, t.Context(), "listed", "scale")
	testenv.Eventually(t, func() error {
		for _, path := range []string{"/organizations/" + listed.organization + "/usage", "/audit-events?organization=" + listed.organization} {
			answer, err := in.api.Call(t.Context(), client.Request{Method: http.MethodGet, Path: path, Header: map[string]string{"Authorization": "Bearer " + in.operator}})
			if err != nil || answer.Status != http.StatusOK {
				return fmt.Errorf("%s: %d %s: %w", path, answer.Status, answer.Body, err)
			}
		}
		text, err := metricsAt(metrics)
		if err != nil {
			return err
		}
		for _, module := range []string{"ingest", "ledger", "grouping", "tenants"} {
			if answeredBy(text, module) == 0 {
				return fmt.Errorf("%s: no read was answered by the standby", module)
			}
		}
		return nil
	})
}

// metricsAt returns a process's metrics at an address, as text.
func metricsAt(address string) (string, error) {
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

var replicaReads = regexp.MustCompile(`(?m)^weir_postgres_replica_reads_total\{outcome="(\w+)",service="(\w+)"\} (\d+)`)

// answeredBy returns how many reads of a service a standby has
// answered, by metrics.
func answeredBy(metrics, service string) (reads int) {
	for _, found := range replicaReads.FindAllStringSubmatch(metrics, -1) {
		if found[1] == "answered" && found[2] == service {
			reads, _ = strconv.Atoi(found[3])
		}
	}
	return reads
}

// An API key sent over plain HTTP to any of the services is refused and
// flagged, whichever service owns the path.
func TestKeysPlaintext(t *testing.T) {
	kafkatest.Parallel(t)
	in, started := startProcesses(t, nil, nil)
	organization, err := in.api.CreateOrganization(t.Context(), in.operator, "Acme", "indie")
	testenv.Must(t, err)
	project, err := in.api.CreateProject(t.Context(), in.operator, organization.ID, "Shop")
	testenv.Must(t, err)
	keys := map[string]client.APIKey{}
	for service := range services {
		keys[service], err = in.api.CreateAPIKey(t.Context(), in.operator, project.ID, "prod", service)
		testenv.Must(t, err)
	}
	for service, key := range keys {
		testenv.Eventually(t, func() error {
			sendPlaintext(t, started[service].address, key.Key)
			return in.isFlagged(t, service, key)
		})
	}
}

// sendPlaintext sends a key over plain HTTP, which is refused.
func sendPlaintext(t *testing.T, address, key string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v1/logs", nil)
	testenv.Must(t, err)
	request.Header.Set("X-Api-Key", key)
	answer, err := http.DefaultClient.Do(request)
	testenv.Must(t, err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "https_required") {
		t.Fatalf("http://%s answers %d %s, %v", address, answer.StatusCode, text, err)
	}
}

// isFlagged returns why a key is not marked as seen over plain HTTP.
func (in installation) isFlagged(t *testing.T, service string, key client.APIKey) error {
	t.Helper()
	answer, err := in.api.Call(t.Context(), client.Request{
		Method: http.MethodGet, Path: "/api-keys/" + key.ID, Header: map[string]string{"Authorization": "Bearer " + in.operator},
	})
	testenv.Must(t, err)
	if !strings.Contains(string(answer.Body), `"kind":"plain_http"`) || !strings.Contains(string(answer.Body), `"address":"127.0.0.1"`) {
		return fmt.Errorf("the key that %s was sent is not flagged: %d %s", service, answer.Status, answer.Body)
	}
	return nil
}

// upgrade: an organization with an exhausted quota is refused until
// billing grants bytes, and again until its plan changes. Then
// everything continues, and what was accepted is charged to the byte.
func upgrade(t *testing.T, ctx context.Context, in installation) {
	to := in.tenant(t, ctx, "growing", "bootstrapper")
	m, h := &maker{mark: "growing"}, &history{}
	useUp(t, ctx, in, to, m, h)
	grant := in.decide(t, ctx, "POST", to.organization+"/grants", 201, map[string]any{"amount": quotaBytes, "reason": "a hand"})
	if grant["remaining"] != float64(quotaBytes) {
		t.Errorf("grant %v", grant)
	}
	goesOn(t, ctx, in, to, m, h)
	useUp(t, ctx, in, to, m, h)
	plan := in.decide(t, ctx, "PUT", to.organization+"/subscription", 200, map[string]any{"tier": "scale", "effective": "now"})
	if plan["tier"] != "scale" || plan["state"] != "active" {
		t.Errorf("subscription %v", plan)
	}
	goesOn(t, ctx, in, to, m, h)
	verify(t, ctx, in, to, h)
}

// useUp posts until the quota is exhausted.
func useUp(t *testing.T, ctx context.Context, in installation, to tenant, m *maker, h *history) {
	t.Helper()
	for range 100 {
		if err := postOne(ctx, in, to, m, h); err != nil {
			testenv.Must(t, wantProblem(err, 429, "quota_exceeded"))
			return
		}
	}
	t.Fatal("nothing exhausts the quota")
}

// goesOn waits until posts are accepted again.
func goesOn(t *testing.T, ctx context.Context, in installation, to tenant, m *maker, h *history) {
	t.Helper()
	testenv.Eventually(t, func() error { return postOne(ctx, in, to, m, h) })
}

func postOne(ctx context.Context, in installation, to tenant, m *maker, h *history) error {
	entries := []sent{m.sized(9_000, 2_000)}
	_, err := in.api.Post(ctx, to.key, plainly(body(texts(entries)...)))
	if err == nil {
		h.accepted("growing", entries)
	}
	return err
}

// decide sends a request of billing about an organization.
func (in installation) decide(t *testing.T, ctx context.Context, method, path string, want int, input any) (answered map[string]any) {
	t.Helper()
	text, err := json.Marshal(input)
	testenv.Must(t, err)
	answer, err := in.api.Call(ctx, client.Request{Method: method, Path: "/organizations/" + path, Body: text,
		Header: map[string]string{"Authorization": "Bearer " + in.operator, "Content-Type": "application/json", "Idempotency-Key": fmt.Sprint(method, path)}})
	testenv.Must(t, err)
	if answer.Status != want {
		t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	testenv.Must(t, json.Unmarshal(answer.Body, &answered))
	return answered
}
