package e2e

import (
	"cmp"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/gateway/app"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

const metricsPage = "../docs/metrics.md"

// docs/metrics.md lists exactly the metrics of Weir's processes. With
// -update the test writes it.
func metricsAreDocumented(t *testing.T, registry *telemetry.Registry) {
	measureListener(t, registry)
	measureGateway(t, registry)
	allinone.NewBackendUp(registry.For("weir"))
	postgres.NewRestarts(registry.For("weir"))
	broker, err := kafka.Start(kafka.Config{Dir: t.TempDir(), Metrics: registry.For("broker"), Logger: testenv.Logger(t)})
	must(t, err)
	t.Cleanup(func() { must(t, broker.Close()) })
	shown := describe(registry)
	compareTypes(t, registry, shown)
	page := render(shown)
	if *update {
		must(t, os.WriteFile(metricsPage, []byte(page), 0o600))
	}
	written, err := os.ReadFile(metricsPage)
	must(t, err)
	if string(written) != page {
		t.Error("docs/metrics.md is out of date: go test ./deploy/e2e -run TestModules/metrics -update")
	}
}

// measureGateway registers the gateway's metrics.
func measureGateway(t *testing.T, registry *telemetry.Registry) {
	t.Helper()
	const nobody = "https://127.0.0.1:1"
	_, err := app.New(app.Config{
		Telemetry: telemetry.Config{Registry: registry}, IngestURL: nobody, LedgerURL: nobody, GroupingURL: nobody, TenantsURL: nobody,
	}, slog.New(slog.DiscardHandler))
	must(t, err)
}

// measureListener registers a listener's metrics. It ends before it has
// served a request.
func measureListener(t *testing.T, registry *telemetry.Registry) {
	t.Helper()
	listener, err := httpapi.Listen("127.0.0.1:0")
	must(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	none := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }}
	server := httpapi.Server{TLS: none, Metrics: registry.For("listener"), Logger: slog.New(slog.DiscardHandler), Clock: time.Now}
	must(t, server.Serve(ended, listener))
}

// A metric is the page's description of one.
type metric struct {
	name, help       string
	labels, services []string
}

// kind returns the metric's type, which its name shows
// by Prometheus's conventions.
func (m metric) kind() string {
	switch {
	case strings.HasSuffix(m.name, "_total"):
		return "counter"
	case strings.HasSuffix(m.name, "_duration_seconds"), strings.HasSuffix(m.name, "_delay_seconds"):
		return "histogram"
	default:
		return "gauge"
	}
}

// description matches the text of a Desc, which has no accessors.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"), .*constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

var (
	constLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)
	ours       = regexp.MustCompile(`^weir_[a-z][a-z_]*[a-z]$`)
)

// describe returns the metrics of a registry by name, except those of
// Go and the process.
func describe(registry *telemetry.Registry) map[string]*metric {
	descs := make(chan *prometheus.Desc)
	go func() {
		registry.Registered().Describe(descs)
		close(descs)
	}()
	shown := map[string]*metric{}
	for desc := range descs {
		if parts := description.FindStringSubmatch(desc.String()); parts != nil && ours.MatchString(parts[1]) {
			m := shown[parts[1]]
			if m == nil {
				m = &metric{name: parts[1]}
				shown[m.name] = m
			}
			m.add(parts[2], constLabel.FindAllStringSubmatch(parts[3], -1), parts[4])
		}
	}
	return shown
}

// add adds one more description of the metric: of another service, or
// with other labels.
func (m *metric) add(help string, fixed [][]string, variable string) {
	_, _ = fmt.Sscanf(help, "%q", &m.help)
	for _, label := range fixed {
		if label[1] == "service" {
			m.services = append(m.services, label[2])
		} else {
			m.labels = append(m.labels, label[1])
		}
	}
	if variable != "" {
		m.labels = append(m.labels, strings.Split(variable, ",")...)
	}
	slices.Sort(m.services)
	slices.Sort(m.labels)
	m.services, m.labels = slices.Compact(m.services), slices.Compact(m.labels)
}

// compareTypes compares the types by name with those already measured,
// and the descriptions of all services.
func compareTypes(t *testing.T, registry *telemetry.Registry, shown map[string]*metric) {
	t.Helper()
	families, err := registry.Registered().Gather()
	must(t, err)
	compared := 0
	for _, family := range families {
		m := shown[family.GetName()]
		if m == nil {
			if strings.HasPrefix(family.GetName(), "weir_") {
				t.Errorf("%s is measured, and not described", family.GetName())
			}
			continue
		}
		compared++
		if kind := strings.ToLower(family.GetType().String()); kind != m.kind() {
			t.Errorf("%s is a %s, by its name it would be a %s", m.name, kind, m.kind())
		}
		if family.GetHelp() != m.help {
			t.Errorf("%s has several helps: %q and %q", m.name, m.help, family.GetHelp())
		}
	}
	if compared < len(shown)/2 {
		t.Errorf("only %d of %d types were compared", compared, len(shown))
	}
}

const pageHead = `# Metrics

Every metric that a process of Weir shows on ` + "`/metrics`" + ` where ` + "`WEIR_METRICS_LISTEN`" + ` is set. ` + "`go test ./deploy/e2e -run TestModules/metrics -update`" + ` writes this page, and without
` + "`-update`" + ` the test fails where it is out of date. Each has the label ` + "`service`" + ` beside those named here; none names a tenant. *listener*: whatever listens (all but the broker); *broker*: the
embedded one; *weir*: ` + "`weir run`" + ` itself. Metrics of Go (` + "`go_…`" + `) and of the process (` + "`process_…`" + `) are those of [client_golang](https://pkg.go.dev/github.com/prometheus/client_golang/prometheus/collectors).

Where a request is [sampled](../../shared/tracing/README.md), ` + "`weir_http_request_duration_seconds`" + ` has an exemplar with the ` + "`trace_id`" + ` of the request, and ` + "`weir_bus_apply_delay_seconds`" + ` with that of the
transaction that committed its records. A scrape shows them in OpenMetrics, as Prometheus asks for it by itself, and keeps them with ` + "`--enable-feature=exemplar-storage`" + `.

| Metric | Type | Labels | Services | What it is |
|---|---|---|---|---|
`

// render writes the page.
func render(shown map[string]*metric) string {
	var page strings.Builder
	page.WriteString(pageHead)
	for _, m := range slices.SortedFunc(maps.Values(shown), func(a, b *metric) int { return cmp.Compare(a.name, b.name) }) {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind(), strings.Join(m.labels, ", "), strings.Join(m.services, ", "),
			strings.ReplaceAll(m.help, "|", `\|`))
	}
	return page.String()
}
