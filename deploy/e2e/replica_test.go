package e2e

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/weirlog/weir/deploy/client"
)

// readByStandby looks that a standby has answered readers of each module, in the
// process that shows its metrics at an address.
func readByStandby(t *testing.T, in installation, metrics string) {
	listed := in.tenant(t, t.Context(), "listed", "scale")
	for _, path := range []string{"/organizations/" + listed.organization + "/usage", "/audit-events?organization=" + listed.organization} {
		answer, err := in.api.Call(t.Context(), client.Request{Method: http.MethodGet, Path: path, Header: map[string]string{"Authorization": "Bearer " + in.operator}})
		must(t, err)
		if answer.Status != http.StatusOK {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
	text, err := metricsAt(metrics)
	must(t, err)
	for _, module := range []string{"ingest", "ledger", "grouping", "tenants"} {
		if answeredBy(text, module) == 0 {
			t.Errorf("%s: no read was answered by the standby", module)
		}
	}
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
