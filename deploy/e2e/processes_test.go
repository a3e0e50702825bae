package e2e

import (
	"maps"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/localca"
)

// Every service as a process of its own, the gateway before them.
func TestProcesses(t *testing.T) {
	certificates, err := localca.Ensure(t.TempDir(), time.Now())
	must(t, err)
	operator := "weirsvc_" + "fedcba9876543210fedcba9876543210fedcba9876543210"
	given := backends(t)
	maps.Copy(given, map[string]string{
		"WEIR_TLS_CERT_FILE": certificates.Server, "WEIR_TLS_KEY_FILE": certificates.ServerKey, "WEIR_CA_FILE": certificates.CA,
		"WEIR_OPERATOR_TOKEN": operator, "WEIR_TRUSTED_PROXIES": "127.0.0.1",
	})
	topics := launch(t, build(t, "deploy/cmd/weir"), given, "topics")
	if err := topics.wait(); err != nil {
		t.Fatalf("cannot create the topics: %v\n%s", err, topics.output)
	}
	for name, main := range map[string]string{
		"TENANTS": "tenants/cmd/tenants", "INGEST": "ingest/cmd/ingest", "LEDGER": "ledger/cmd/ledger", "GROUPING": "grouping/cmd/grouping",
	} {
		address := freeAddress(t)
		serve(t, main, given, address)
		given["WEIR_"+name+"_URL"] = "https://" + address
	}
	address := freeAddress(t)
	gateway := serve(t, "deploy/cmd/gateway", given, address)
	in := connect(t, "https://"+address+"/v1", certificates.CA, operator)
	if err := gateway.awaitReady(t.Context(), in, startLimit); err != nil {
		t.Fatal(err)
	}
	scenario(t, in, nil)
}

// serve builds and starts one service, and stops it in order when the test ends.
func serve(t *testing.T, main string, given map[string]string, address string) *process {
	t.Helper()
	variables := maps.Clone(given)
	variables["WEIR_LISTEN"] = address
	running := launch(t, build(t, main), variables)
	t.Cleanup(func() {
		if err := running.stop(); err != nil {
			t.Errorf("%s did not stop in order: %v", main, err)
		}
		if t.Failed() {
			t.Logf("output of %s:\n%s", main, running.output)
		}
	})
	return running
}
