package prometheus

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
