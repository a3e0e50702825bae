package prometheus

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/weirlog/weir/shared/testenv"
)

const runbooks = "../docs/runbooks"

// A rule is an alert, or a record.
type rule struct {
	Alert       string
	Record      string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func rules(t *testing.T, file string) (all []rule) {
	t.Helper()
	var read struct{ Groups []struct{ Rules []rule } }
	unmarshal(t, file, &read)
	for _, group := range read.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) < 20 {
		t.Fatalf("%s has %d rules", file, len(all))
	}
	return all
}

func unmarshal(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text(t, file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	testenv.Must(t, err)
	return string(content)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files
}

// Each alert says what happened, how urgent it is, and where the
// remedy is written.
func TestAlertsNameRemedies(t *testing.T) {
	for _, alert := range rules(t, "alerts.yaml") {
		if want := "https://github.com/weirlog/weir/blob/main/deploy/docs/runbooks/" + alert.Alert + ".md"; alert.Annotations["runbook_url"] != want {
			t.Errorf("%s: the runbook is %q, want %q", alert.Alert, alert.Annotations["runbook_url"], want)
		}
		if severity := alert.Labels["severity"]; severity != "page" && severity != "ticket" {
			t.Errorf("%s: the severity is %q", alert.Alert, severity)
		}
		if alert.Annotations["summary"] == "" || !strings.Contains(alert.Annotations["description"], ".") {
			t.Errorf("%s does not say what happened: %q", alert.Alert, alert.Annotations)
		}
	}
}

// sections are those of a runbook, in this order.
var sections = []string{"What users notice", "See it", "Likely causes", "What to do", "It is over when"}

// Each alert has a runbook with all its sections, and each runbook an alert.
func TestAlertsHaveRunbooks(t *testing.T) {
	alerts := map[string]bool{}
	for _, alert := range rules(t, "alerts.yaml") {
		alerts[alert.Alert] = true
	}
	index := text(t, filepath.Join(runbooks, "README.md"))
	for name := range alerts {
		var found []string
		for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(text(t, filepath.Join(runbooks, name+".md")), -1) {
			found = append(found, heading[1])
		}
		if !slices.Equal(found, sections) {
			t.Errorf("the runbook of %s has the sections %q", name, found)
		}
		if !strings.Contains(index, "["+name+"]("+name+".md)") {
			t.Errorf("README.md of the runbooks lacks %s", name)
		}
	}
	for _, file := range glob(t, filepath.Join(runbooks, "*.md")) {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "README" && !alerts[name] {
			t.Errorf("no alert has the runbook %s", name)
		}
	}
}

// Links among the runbooks are valid.
func TestRunbooksLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, file := range glob(t, filepath.Join(runbooks, "*.md")) {
		for _, match := range link.FindAllStringSubmatch(text(t, file), -1) {
			if _, err := os.Stat(filepath.Join(runbooks, match[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// firing finds an alert's expectation in a test for promtool: its name,
// its severity, its labels.
var firing = regexp.MustCompile(`^ALERTS\{alertname="(\w+)",alertstate="firing",severity="(\w+)"\}$`)

const everyAlert = `ALERTS{alertstate="firing"}`

// expectations returns the samples of ALERTS that the tests for
// promtool expect, by alert and severity: nil for a time at which it
// does not fire.
func expectations(t *testing.T) map[string][][]string {
	t.Helper()
	found := map[string][][]string{}
	for _, file := range glob(t, "*_test.yaml") {
		var read struct {
			Tests []struct {
				Expressions []struct {
					Expr    string
					Samples []struct{ Labels string } `yaml:"exp_samples"`
				} `yaml:"promql_expr_test"`
			}
		}
		unmarshal(t, file, &read)
		for _, test := range read.Tests {
			for _, expression := range test.Expressions {
				if expression.Expr == everyAlert {
					continue // no other alert fires: another query names the firing one
				}
				match := firing.FindStringSubmatch(expression.Expr)
				if match == nil {
					t.Fatalf("%s: %q asks for no alert", file, expression.Expr)
				}
				var labels []string
				for _, sample := range expression.Samples {
					labels = append(labels, sample.Labels)
				}
				of := match[1] + " " + match[2]
				found[of] = append(found[of], labels)
			}
		}
	}
	return found
}

// Each alert is tested firing and not firing, and its description names
// only labels that it has.
func TestAlertsAreTested(t *testing.T) {
	tested := expectations(t)
	label := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, alert := range rules(t, "alerts.yaml") {
		cases := tested[alert.Alert+" "+alert.Labels["severity"]]
		if !slices.ContainsFunc(cases, func(labels []string) bool { return len(labels) == 0 }) {
			t.Errorf("no test has %s (%s) where it does not fire", alert.Alert, alert.Labels["severity"])
		}
		var fires []string
		for _, labels := range cases {
			fires = append(fires, labels...)
		}
		if len(fires) == 0 {
			t.Errorf("no test has %s (%s) where it fires", alert.Alert, alert.Labels["severity"])
		}
		for _, named := range label.FindAllStringSubmatch(alert.Annotations["description"], -1) {
			for _, labels := range fires {
				if !strings.Contains(labels, named[1]+`="`) {
					t.Errorf("the description of %s names the label %s, which %s has not", alert.Alert, named[1], labels)
				}
			}
		}
	}
}

// The rules are tested by the version of Prometheus that evaluates them
// on one machine. The module's v0.316.0 is v3.16.0.
func TestRulesAreTestedByWhatRunsThem(t *testing.T) {
	tests := regexp.MustCompile(`promtool@v0\.3(\d\d)\.(\d+)`).FindStringSubmatch(text(t, "../../Makefile"))
	runs := regexp.MustCompile(`prom/prometheus:v3\.(\d+)\.(\d+)`).FindStringSubmatch(text(t, "../compose/compose.yaml"))
	if tests == nil || runs == nil || !slices.Equal(tests[1:], runs[1:]) {
		t.Errorf("tested by %q, run by %q", tests, runs)
	}
}

// external are metrics from others: Prometheus itself, the process by
// client_golang, the machine by node_exporter.
var external = map[string]bool{
	"process_start_time_seconds": true, "process_open_fds": true, "process_max_fds": true, "process_cpu_seconds_total": true,
	"process_resident_memory_bytes": true, "node_filesystem_avail_bytes": true, "node_filesystem_size_bytes": true,
}

// others are a series' labels besides its metric's own: a module's,
// Prometheus's, a histogram's.
var others = []string{"service", "instance", "job", "le"}

// measured returns the names that queries may use, each with its
// labels: those of the page of all metrics, which a test of deploy/e2e
// compares with the registries, and those of histograms' parts.
func measured(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	line := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]*) \\|")
	for _, match := range line.FindAllStringSubmatch(text(t, "../docs/metrics.md"), -1) {
		labels := append(strings.Split(match[3], ", "), others...)
		if match[2] != "histogram" {
			names[match[1]] = labels
			continue
		}
		for _, part := range []string{"_bucket", "_count", "_sum"} {
			names[match[1]+part] = labels
		}
	}
	if len(names) < 100 {
		t.Fatalf("only %d metrics are read from the page", len(names))
	}
	return names
}

// queried returns the files with queries.
func queried(t *testing.T) []string {
	t.Helper()
	files := append(glob(t, filepath.Join(runbooks, "*.md")), "slo.yaml", "alerts.yaml", "alerts_test.yaml", "hours_test.yaml")
	return append(files, glob(t, dashboards)...)
}

// Each metric used by an alert, a dashboard or a runbook is
// measured or recorded.
func TestMetricsExist(t *testing.T) {
	known := measured(t)
	for _, record := range rules(t, "slo.yaml") {
		known[record.Record] = nil
	}
	name := regexp.MustCompile(`\b(weir:[a-z_0-9:]+|(?:weir|process|node|go)_[a-z_]+[a-z])\b`)
	networks := regexp.MustCompile(`--network \w+`) // of Compose, with similar names
	for _, file := range queried(t) {
		used := name.FindAllString(networks.ReplaceAllString(text(t, file), ""), -1)
		for _, used := range used {
			if _, measured := known[used]; !measured && !external[used] {
				t.Errorf("%s goes by %s, which nobody measures", file, used)
			}
		}
		if len(used) == 0 && !strings.HasSuffix(file, ".md") {
			t.Errorf("no metric is found in %s", file)
		}
	}
}

// Each label that a query selects by is one of its metric: an unknown
// one is no error, and finds nothing.
func TestLabelsExist(t *testing.T) {
	known, compared := measured(t), 0
	selector := regexp.MustCompile(`\b(weir_[a-z_]+[a-z])\{([^}]*)\}`)
	label := regexp.MustCompile(`(\w+)\s*(?:=~|!=|!~|=)\s*\\?"`)
	for _, file := range queried(t) {
		for _, selected := range selector.FindAllStringSubmatch(text(t, file), -1) {
			for _, by := range label.FindAllStringSubmatch(selected[2], -1) {
				compared++
				if !slices.Contains(known[selected[1]], by[1]) {
					t.Errorf("%s selects by %s, a label that %s has not", file, by[1], selected[1])
				}
			}
		}
	}
	if compared < 200 {
		t.Errorf("only %d labels were compared", compared)
	}
}
