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

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/continuous"
	"github.com/weirlog/weir/deploy/gateway/app"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
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
	continuous.NewMetrics(registry.For("backup"))
	broker, err := kafka.Start(kafka.Config{Dir: t.TempDir(), Metrics: registry.For("broker"), Logger: testenv.Logger(t)})
	testenv.Must(t, err)
	t.Cleanup(func() { testenv.Must(t, broker.Close()) })
	shown := describe(registry)
	compareTypes(t, registry, shown)
	page := render(shown)
	if *update {
		testenv.Must(t, os.WriteFile(metricsPage, []byte(page), 0o600))
	}
	written, err := os.ReadFile(metricsPage)
	testenv.Must(t, err)
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
	testenv.Must(t, err)
}

// measureListener registers a listener's metrics. It ends before it has
// served a request.
func measureListener(t *testing.T, registry *telemetry.Registry) {
	t.Helper()
	listener, err := httpapi.Listen("127.0.0.1:0")
	testenv.Must(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	none := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }}
	server := httpapi.Server{TLS: none, Metrics: registry.For("listener"), Logger: slog.New(slog.DiscardHandler), Clock: time.Now}
	testenv.Must(t, server.Serve(ended, listener))
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
	testenv.Must(t, err)
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
embedded one; *weir*: ` + "`weir run`" + ` itself; *backup*: ` + "`weir backup continuous`" + `. Metrics of Go (` + "`go_…`" + `) and of the process (` + "`process_…`" + `) are those of [client_golang](https://pkg.go.dev/github.com/prometheus/client_golang/prometheus/collectors).

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

// What the modules have once they have migrated their schemas: bounded and
// secured tables, documented metrics, and what the runbooks read.
func TestModules(t *testing.T) {
	database, registry := postgrestest.URL(t), telemetry.New()
	modules, conn := openModules(t, database, registry), dial(t, database)
	t.Run("tables have a bound", func(t *testing.T) { tablesHaveABound(t, modules, conn, registry) })
	t.Run("catalogue", func(t *testing.T) { catalogueIsSecured(t, conn) })
	t.Run("metrics", func(t *testing.T) { metricsAreDocumented(t, registry) })
	t.Run("runbooks", func(t *testing.T) { runbooksStatements(t, conn) })
}

// Every table of a schema has a bound, named by its module with what
// enforces it, which must exist. Every name is a table's. After the
// module has pruned, metrics show each table's size, and for pruned
// ones what was removed and kept.
func tablesHaveABound(t *testing.T, modules []schemaOwner, conn *pgx.Conn, registry *telemetry.Registry) {
	bounds := map[string]prune.Bound{}
	for i, module := range modules {
		testenv.Must(t, module.Prune(t.Context()))
		for _, bound := range module.Bounds() {
			name := schemas[i] + "." + bound.Table
			if _, twice := bounds[name]; twice || bound.Keeps == "" || bound.By == "" {
				t.Errorf("%s keeps %q by %q; twice: %t", name, bound.Keeps, bound.By, twice)
			}
			bounds[name] = bound
		}
	}
	shown := tablesShown(t, registry)
	for _, table := range readTables(t, conn) {
		if table.Parent != "" {
			continue
		}
		name := table.Schema + "." + table.Name
		bound, bounded := bounds[name]
		if !bounded {
			t.Errorf("%s grows without a bound: name what keeps it small beside its code, see prune.Bound", name)
		}
		checkMeasured(t, shown, name, bound)
		checkEnforced(t, conn, name, bound)
		delete(bounds, name)
	}
	for name := range bounds {
		t.Errorf("%s has a bound and is no table", name)
	}
}

// checkMeasured checks that a table has the metrics that show a failing bound.
func checkMeasured(t *testing.T, shown map[string]bool, name string, bound prune.Bound) {
	t.Helper()
	wanted := []string{"weir_table_bytes"}
	if bound.By == "shared/prune" {
		wanted = append(wanted, "weir_pruned_total", "weir_prune_oldest_age_seconds")
	}
	for _, metric := range wanted {
		if !shown[metric+" "+name] {
			t.Errorf("%s has no %s after its module has pruned", name, metric)
		}
	}
}

// What a bound may name of a table or a page.
var (
	namesKey     = regexp.MustCompile(`foreign key to (\w+)`)
	namesSetting = regexp.MustCompile(`WEIR_[A-Z_]+`)
)

// checkEnforced checks what a bound names: a foreign key that removes
// rows with others, a key of one row, a setting.
func checkEnforced(t *testing.T, conn *pgx.Conn, name string, bound prune.Bound) {
	t.Helper()
	if key := namesKey.FindStringSubmatch(bound.By); key != nil && !goesWith(t, conn, name, key[1]) {
		t.Errorf("%s has no foreign key to %s that removes its rows", name, key[1])
	}
	if bound.Keeps == "one row" && !hasOneRow(t, conn, name) {
		t.Errorf("%s may have more than one row", name)
	}
	settings, err := os.ReadFile("../docs/settings.md")
	testenv.Must(t, err)
	for _, setting := range namesSetting.FindAllString(bound.By, -1) {
		if !strings.Contains(string(settings), "`"+setting+"`") {
			t.Errorf("%s is bounded by %s, which is no setting", name, setting)
		}
	}
}

// goesWith reports whether rows of a table are deleted with those of
// another one of its schema.
func goesWith(t *testing.T, conn *pgx.Conn, name, parent string) (goes bool) {
	t.Helper()
	testenv.Must(t, conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_constraint k JOIN pg_class p ON p.oid = k.confrelid
		WHERE k.conrelid = $1::text::regclass AND p.relname = $2 AND k.contype = 'f' AND k.confdeltype = 'c')`, name, parent).Scan(&goes))
	return goes
}

// hasOneRow reports whether the primary key of a table has one possible value.
func hasOneRow(t *testing.T, conn *pgx.Conn, name string) (one bool) {
	t.Helper()
	testenv.Must(t, conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_constraint p JOIN pg_constraint c USING (conrelid)
		JOIN pg_attribute a ON a.attrelid = p.conrelid AND p.conkey = ARRAY[a.attnum]
		WHERE p.conrelid = $1::text::regclass AND p.contype = 'p' AND c.contype = 'c' AND c.conkey = p.conkey
			AND pg_get_constraintdef(c.oid) = 'CHECK (' || quote_ident(a.attname) || ')')`, name).Scan(&one))
	return one
}

// tablesShown returns the metrics of tables, as "weir_table_bytes
// ledger.books".
func tablesShown(t *testing.T, registry *telemetry.Registry) map[string]bool {
	t.Helper()
	families, err := registry.Registered().Gather()
	testenv.Must(t, err)
	shown := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			shown[fmt.Sprintf("%s %s.%s", family.GetName(), labels["service"], labels["table"])] = true
		}
	}
	return shown
}

// Events and faults, by their names on the page of runbooks.
const (
	restarted     = "a replica restarts, an upgrade, another partition or replica"
	killed        = "a process is killed and comes back"
	brokerKilled  = "the broker is killed and comes back"
	databaseBack  = "PostgreSQL is killed and comes back"
	failedOver    = "PostgreSQL fails over to its standby"
	brokerLost    = "one broker of three is lost"
	brokersLost   = "two brokers of three are lost"
	brokerGone    = "no broker answers"
	databaseGone  = "PostgreSQL is gone"
	processGone   = "a process is gone"
	againAndAgain = "a process dies again and again"
	expiring      = "a certificate is about to expire"
	expired       = "a certificate has expired"
	mayNotWrite   = "ingest may not write to the log"
	mayNotRead    = "a module may not read the log"
	inapplicable  = "a record can't be applied"
	endLost       = "the log has lost its end"
	booksChanged  = "books were changed by hand"
)

// recorded are the tests that plant each of these, and let Prometheus judge it.
var recorded = map[string]string{
	restarted: "TestAvailable", failedOver: "TestAvailable", brokerLost: "TestAvailable", brokersLost: "TestAvailable", expired: "TestAvailable",
	killed: "TestAlerted", brokerKilled: "TestAlerted", databaseBack: "TestAlerted", brokerGone: "TestAlerted", databaseGone: "TestAlerted",
	processGone: "TestAlerted", againAndAgain: "TestAlerted", expiring: "TestAlerted", inapplicable: "TestAlerted", endLost: "TestAlerted",
	booksChanged: "TestAlerted", mayNotWrite: "TestSecuredProcesses", mayNotRead: "TestSecuredProcesses",
}

// tried are the faults of make test-faults, with their names on the page.
var tried = map[string][]string{
	"TestFaultPoison":                                 {inapplicable},
	"TestFaults/broker killed":                        {brokerKilled},
	"TestFaults/broker paused":                        {brokerGone},
	"TestFaults/network of the broker":                {brokerGone},
	"TestFaults/leader killed":                        {brokerLost},
	"TestFaults/majority down":                        {brokersLost},
	"TestFaults/consumer killed":                      {killed},
	"TestFaults/consumer of lanes killed":             {killed},
	"TestFaults/consumer stopped":                     {restarted},
	"TestFaults/members come and go":                  {restarted},
	"TestFaults/members with lanes come and go":       {restarted},
	"TestFaults/network of the database":              {databaseGone},
	"TestFaults/database restarted":                   {databaseBack},
	"TestFaults/database killed":                      {databaseBack},
	"TestFaults/database sessions killed":             {databaseBack},
	"TestFaults/database sessions killed under lanes": {databaseBack},
	"TestKilled":             {killed, againAndAgain},
	"TestKilledReplica":      {killed},
	"TestBesieged":           {killed, databaseBack, brokerKilled},
	"TestUpgraded":           {restarted},
	"TestAvailable":          {restarted, brokerLost, brokersLost, failedOver, expired},
	"TestScaled":             {restarted, brokerLost},
	"TestAlerted":            {againAndAgain},
	"TestSecuredProcesses":   {mayNotWrite, mayNotRead},
	"TestBooksAreTheModel":   nil, // steps, no faults
	"TestARebuildIsTheBooks": nil, // histories, no faults
	"TestHistoriesLikeModel": nil, // histories, no faults
}

// Each fault of make test-faults is on the page with its alerts, and a
// test lets Prometheus judge each that is on the page.
func TestFaultsAreOnThePage(t *testing.T) {
	page := alertsOnThePage(t)
	if on, judged := slices.Sorted(maps.Keys(page)), slices.Sorted(maps.Keys(recorded)); !slices.Equal(on, judged) {
		t.Errorf("the page has %q, judged are %q", on, judged)
	}
	for _, name := range faultsTried(t) {
		if _, known := tried[name]; !known {
			t.Errorf("make test-faults tries %q: say what it is to an installation", name)
		}
	}
	for name, faults := range tried {
		for _, fault := range faults {
			if _, there := page[fault]; !there {
				t.Errorf("%s is %q, which is not on the page", name, fault)
			}
		}
	}
}

var (
	faultOfBus = regexp.MustCompile(`\{"([a-z ]+)", [a-zA-Z]+\}`)
	testRun    = regexp.MustCompile(`-run='\^Test\(?([\w|]+)\)?\$\$'`)
	faultsAll  = regexp.MustCompile(`(?ms)^KILLED .*?\n|^test-faults: .*?\n\n|^test-upgrade: .*?\n\n|^test-availability: .*?\n\n|^test-alerts: .*?\n\n|^test-secured: .*?\n\n`)
)

// faultsTried returns those of make test-faults.
func faultsTried(t *testing.T) (names []string) {
	t.Helper()
	for _, file := range []string{"fault_test.go", "cluster_apache_test.go"} {
		for _, fault := range faultOfBus.FindAllStringSubmatch(read(t, "../../shared/bus/"+file), -1) {
			names = append(names, "TestFaults/"+fault[1])
		}
	}
	for _, recipe := range faultsAll.FindAllString(read(t, "../../Makefile"), -1) {
		for _, run := range testRun.FindAllStringSubmatch(recipe, -1) {
			for name := range strings.SplitSeq(run[1], "|") {
				names = append(names, "Test"+name)
			}
		}
	}
	if len(names) < 20 {
		t.Fatalf("make test-faults is not read right: %q", names)
	}
	return names
}

// alertsOnThePage returns each fault's alerts, by the page of runbooks.
func alertsOnThePage(t *testing.T) map[string][]string {
	t.Helper()
	_, table, _ := strings.Cut(read(t, "../docs/runbooks/README.md"), "\n| Fault | Alert |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	raised, alert := map[string][]string{}, regexp.MustCompile(`\[(Weir\w+)\]`)
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \| (.*) \|$`).FindAllStringSubmatch(table, -1) {
		raised[row[1]] = nil
		for _, match := range alert.FindAllStringSubmatch(row[2], -1) {
			raised[row[1]] = append(raised[row[1]], match[1])
		}
	}
	return raised
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	testenv.Must(t, err)
	return string(text)
}
