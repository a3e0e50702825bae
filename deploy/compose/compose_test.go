package compose

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	gateway "github.com/weirlog/weir/deploy/gateway/app"
	"github.com/weirlog/weir/deploy/provision"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/shared/testenv"
	tenants "github.com/weirlog/weir/tenants/app"
)

// services are Weir's, with the types of their settings.
var services = map[string]any{
	"tenants": &tenants.Config{}, "ingest": &ingest.Config{}, "ledger": &ledger.Config{}, "grouping": &grouping.Config{}, "gateway": &gateway.Config{},
}

func load(t *testing.T, secrets string, files ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions(files, cli.WithProfiles([]string{"*"}), cli.WithEnv([]string{"WEIR_VERSION=v1.4.0", "WEIR_SECRETS=" + secrets}))
	testenv.Must(t, err)
	project, err := options.LoadProject(t.Context())
	testenv.Must(t, err)
	return project
}

// The files contain only what Compose knows, and name every image
// with its version.
func TestImagesArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:v?\d+(\.\d+)+$`)
	for _, files := range [][]string{{"compose.yaml"}, {"compose.yaml", "scenario.yaml"}, {"compose.yaml", "compose.clickhouse.yaml"}} {
		for name, service := range load(t, t.TempDir(), files...).Services {
			if !pinned.MatchString(service.Image) {
				t.Errorf("%s: the image %q has no version", name, service.Image)
			}
		}
	}
}

// Each container has only its needed rights and memory, and
// every server restarts.
func TestRights(t *testing.T) {
	for name, service := range load(t, t.TempDir(), "compose.yaml", "compose.clickhouse.yaml").Services {
		if service.Deploy == nil || service.Deploy.Resources.Limits == nil || service.Deploy.Resources.Limits.MemoryBytes == 0 {
			t.Errorf("%s has no bound of its memory", name)
		}
		if service.Privileged || !slices.Contains(service.SecurityOpt, "no-new-privileges:true") || !slices.Equal(service.CapDrop, []string{"ALL"}) {
			t.Errorf("%s can get more rights, beside all without %q", name, service.CapDrop)
		}
		if writes := name == "kafka" || name == "grafana"; service.ReadOnly == writes {
			t.Errorf("%s: its file system is read only: %t", name, service.ReadOnly)
		}
		for _, volume := range service.Volumes {
			if volume.Bind != nil && volume.Bind.Propagation != "" {
				t.Errorf("%s does not start where %s is another kind of mount than %s", name, volume.Source, volume.Bind.Propagation)
			}
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s listens for others on %s:%s", name, port.HostIP, port.Published)
			}
		}
		if _, ours := services[name]; ours && (service.Restart != "unless-stopped" ||
			service.StopGracePeriod == nil || time.Duration(*service.StopGracePeriod) <= 45*time.Second) {
			t.Errorf("%s: restarted %q, stopped within %v", name, service.Restart, service.StopGracePeriod)
		}
	}
}

// Every long-running service has a health check: by its image's own
// program, by another one in it or, without either, by Prometheus.
func TestHealthChecks(t *testing.T) {
	for name, service := range load(t, t.TempDir(), "compose.yaml", "compose.clickhouse.yaml").Services {
		if _, ours := services[name]; ours || service.Restart == "no" || name == "collector" {
			continue
		}
		if service.HealthCheck == nil || len(service.HealthCheck.Test) < 2 || service.HealthCheck.Disable {
			t.Errorf("nobody asks %s whether it serves", name)
		}
	}
}

// Every service exports its traces to the collector, and continues
// those of the gateway; the gateway continues nobody's.
func TestTracesAreSent(t *testing.T) {
	project := load(t, t.TempDir(), "compose.yaml")
	for name := range services {
		environment := project.Services[name].Environment
		if endpoint := environment["OTEL_EXPORTER_OTLP_ENDPOINT"]; endpoint == nil || *endpoint != "http://collector:4318" {
			t.Errorf("%s sends no traces", name)
		}
		if follows := environment["WEIR_TRACES_FROM_PROXIES"] != nil; follows == (name == "gateway") {
			t.Errorf("%s follows traces of others: %t", name, follows)
		}
		if _, reached := project.Services[name].Networks["observe"]; !reached {
			t.Errorf("%s does not reach the collector", name)
		}
	}
}

// The tests read the collector's settings with the version that runs.
func TestCollectorIsTestedAsItRuns(t *testing.T) {
	module, err := os.ReadFile("../docker/collector/go.mod")
	testenv.Must(t, err)
	_, version, _ := strings.Cut(load(t, t.TempDir(), "compose.yaml").Services["collector"].Image, ":")
	if !strings.Contains(string(module), "go.opentelemetry.io/collector/otelcol v"+version+"\n") {
		t.Errorf("%s runs, the stand-in is another", version)
	}
}

// Each variable of ours is a setting of the service, and one that names
// a secret's file names a secret of the service.
func TestSettingsAreKnown(t *testing.T) {
	project := load(t, t.TempDir(), "compose.yaml", "scenario.yaml", "compose.clickhouse.yaml")
	for name, config := range services {
		known := settings(t, config)
		for variable, value := range project.Services[name].Environment {
			setting, _ := strings.CutSuffix(variable, "_FILE")
			if !known[variable] && !known[setting] {
				t.Errorf("%s has no setting %s", name, variable)
			}
			if file, isSecret := strings.CutPrefix(*value, "/run/secrets/"); isSecret && !given(project.Services[name], file) {
				t.Errorf("%s is not given %s", name, file)
			}
		}
	}
}

func given(service types.ServiceConfig, secret string) bool {
	return slices.ContainsFunc(service.Secrets, func(s types.ServiceSecretConfig) bool { return filepath.Base(cmp.Or(s.Target, s.Source)) == secret })
}

// settings returns the variables that a program reads.
func settings(t *testing.T, config any) map[string]bool {
	t.Helper()
	var program struct {
		process.Memory
		LogJSON bool `env:"WEIR_LOG_JSON"`
	}
	known := map[string]bool{}
	for _, part := range []any{config, &program} {
		parser, err := kong.New(part)
		testenv.Must(t, err)
		for _, flag := range parser.Model.Flags {
			for _, variable := range flag.Tag.Envs {
				known[variable] = true
			}
		}
	}
	return known
}

// Every secret is a generated file, and no service gets one that
// it doesn't use.
func TestSecretsAreMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	testenv.Must(t, provision.Ensure(dir, "postgres", time.Now(), "gateway"))
	project := load(t, dir, "compose.yaml", "compose.clickhouse.yaml")
	used := map[string]bool{}
	for name, service := range project.Services {
		for _, secret := range service.Secrets {
			used[secret.Source] = true
			if !its(name, secret.Source) {
				t.Errorf("%s is given %s", name, secret.Source)
			}
		}
	}
	for name, secret := range project.Secrets {
		if _, err := os.Stat(secret.File); err != nil || !used[name] {
			t.Errorf("%s: used %t, %v", name, used[name], err)
		}
	}
}

// its reports whether a secret is for a service: credentials are for
// the service that uses them, and for the job that sets them.
func its(service, secret string) bool {
	switch {
	case strings.HasSuffix(secret, "_database_url"):
		if service == "copy" {
			return strings.Contains(secret, "_migrate_")
		}
		return secret == provision.DatabaseURL(service) || service == "migrate" && secret != provision.BackupDatabaseURL || (service == "doctor" || service == "resume") && !strings.Contains(secret, "_migrate_")
	case strings.HasSuffix(secret, "_broker_password"):
		return secret == provision.BrokerPassword(service) || service == "users" || service == "copy" && secret == provision.BrokerPassword("doctor")
	}
	return true
}

// Clients without a user reach only the broker's listener that demands
// authentication: the others are only in the broker's own container.
func TestBrokerAsksForUsers(t *testing.T) {
	services := load(t, t.TempDir(), "compose.yaml").Services
	for listener := range strings.SplitSeq(*services["kafka"].Environment["KAFKA_LISTENERS"], ",") {
		if !strings.HasPrefix(listener, "USERS://") && !strings.Contains(listener, "://127.0.0.1:") {
			t.Errorf("%s is open to others", listener)
		}
	}
	if protocols := *services["kafka"].Environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"]; !strings.Contains(protocols, "USERS:SASL_") {
		t.Errorf("nobody signs in: %s", protocols)
	}
	for name, service := range services {
		if address := service.Environment["WEIR_BROKERS"]; address != nil && name != "users" && name != "copy" && *service.Environment["WEIR_BROKERS_USER"] != name {
			t.Errorf("%s signs in as %s", name, *service.Environment["WEIR_BROKERS_USER"])
		}
	}
}

// A client of Alertmanager can silence alerts, so only Prometheus reaches it.
func TestOnlyPrometheusReachesAlertmanager(t *testing.T) {
	services := load(t, t.TempDir(), "compose.yaml").Services
	for name, service := range services {
		shared := false
		for network := range service.Networks {
			_, with := services["alertmanager"].Networks[network]
			shared = shared || with
		}
		if want := name == "alertmanager" || name == "prometheus"; shared != want {
			t.Errorf("%s reaches alertmanager: %t", name, shared)
		}
	}
}

// Prometheus scrapes every service with metrics.
func TestEverythingIsScraped(t *testing.T) {
	text, err := os.ReadFile("prometheus.yml")
	testenv.Must(t, err)
	for name := range services {
		if !strings.Contains(string(text), name+":9464") {
			t.Errorf("prometheus.yml lacks %s", name)
		}
	}
	if !strings.Contains(string(text), "backup:9464") {
		t.Error("prometheus.yml lacks the backup")
	}
	if !strings.Contains(string(text), "collector:8888") {
		t.Error("prometheus.yml lacks the collector")
	}
}

// Prometheus has the alerts, and every file given to a service exists.
func TestFilesAreThere(t *testing.T) {
	given := map[string]string{}
	for name, service := range load(t, t.TempDir(), "compose.yaml").Services {
		for _, volume := range service.Volumes {
			if volume.Type != types.VolumeTypeBind {
				continue
			}
			given[filepath.Base(volume.Source)] = name
			if _, err := os.Stat(volume.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, rules := range []string{"slo.yaml", "alerts.yaml"} {
		if given[rules] != "prometheus" {
			t.Errorf("prometheus is not given %s", rules)
		}
	}
}
