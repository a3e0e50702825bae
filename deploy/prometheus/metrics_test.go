package prometheus

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// external are the metrics that others measure: Prometheus itself, the process by client_golang,
// the machine by node_exporter.
var external = map[string]bool{
	"process_start_time_seconds": true, "process_open_fds": true, "process_max_fds": true, "process_cpu_seconds_total": true,
	"process_resident_memory_bytes": true, "node_filesystem_avail_bytes": true, "node_filesystem_size_bytes": true,
}

// measured are the names that queries may use: those of the page of all metrics, which a test of
// deploy/e2e holds against the registries, with what a histogram has beside its name.
func measured(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	line := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|")
	for _, match := range line.FindAllStringSubmatch(text(t, "../docs/metrics.md"), -1) {
		if match[2] != "histogram" {
			names[match[1]] = true
			continue
		}
		for _, part := range []string{"_bucket", "_count", "_sum"} {
			names[match[1]+part] = true
		}
	}
	if len(names) < 100 {
		t.Fatalf("only %d metrics are read from the page", len(names))
	}
	return names
}

// Each metric that an alert, a dashboard or a runbook goes by is measured or recorded.
func TestMetricsExist(t *testing.T) {
	known := measured(t)
	for _, record := range rules(t, "slo.yaml") {
		known[record.Record] = true
	}
	name := regexp.MustCompile(`\b(weir:[a-z_0-9:]+|(?:weir|process|node|go)_[a-z_]+[a-z])\b`)
	networks := regexp.MustCompile(`--network \w+`) // of Compose, named alike
	files := append(glob(t, filepath.Join(runbooks, "*.md")), "slo.yaml", "alerts.yaml", "alerts_test.yaml", "hours_test.yaml")
	for _, file := range append(files, glob(t, dashboards)...) {
		used := name.FindAllString(networks.ReplaceAllString(text(t, file), ""), -1)
		for _, used := range used {
			if !known[used] && !external[used] {
				t.Errorf("%s goes by %s, which nobody measures", file, used)
			}
		}
		if len(used) == 0 && !strings.HasSuffix(file, ".md") {
			t.Errorf("no metric is found in %s", file)
		}
	}
}
