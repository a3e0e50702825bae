package e2e

import (
	"context"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/programs"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

// Every service as a separate process, behind the gateway.
func TestProcesses(t *testing.T) {
	collector := tracingtest.New(t)
	in, _ := startProcesses(t, map[string]string{
		"WEIR_TRUSTED_PROXIES": "127.0.0.1", "WEIR_TRACES_FROM_PROXIES": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_TRACES_SAMPLER_ARG": "1",
	}, nil)
	scenario(t, in, nil)
	t.Run("traces", func(t *testing.T) { tracedBehindGateway(t, in, collector) })
}

// services are the processes behind the gateway, by their names in
// settings, with their main packages.
var services = map[string]string{
	"TENANTS": "tenants/cmd/tenants", "INGEST": "ingest/cmd/ingest", "LEDGER": "ledger/cmd/ledger", "GROUPING": "grouping/cmd/grouping",
}

// A served service is a process with its address.
type served struct {
	*programs.Process

	address string
}

// startProcesses starts every service with common and own settings, and
// the gateway before them. It returns the services by name.
func startProcesses(t *testing.T, settings map[string]string, own func(service string) map[string]string) (in installation, started map[string]served) {
	t.Helper()
	certificates, err := localca.Ensure(t.TempDir(), time.Now())
	must(t, err)
	operator := "weirsvc_" + "fedcba9876543210fedcba9876543210fedcba9876543210"
	given := backends(t)
	maps.Copy(given, map[string]string{
		"WEIR_TLS_CERT_FILE": certificates.Server, "WEIR_TLS_KEY_FILE": certificates.ServerKey, "WEIR_CA_FILE": certificates.CA,
		"WEIR_OPERATOR_TOKEN": operator,
	})
	maps.Copy(given, settings)
	topics := programs.Launch(t, programs.Build(t, "deploy/cmd/weir"), merged(given, own, "TOPICS"), "topics")
	if err := topics.Wait(); err != nil {
		t.Fatalf("cannot create the topics: %v\n%s", err, topics.Output)
	}
	started = map[string]served{}
	for name, main := range services {
		listen := freeAddress(t)
		started[name] = served{serve(t, main, merged(given, own, name), listen), listen}
		given["WEIR_"+name+"_URL"] = "https://" + listen
	}
	address := freeAddress(t)
	gateway := serve(t, "deploy/cmd/gateway", given, address)
	in = connect(t, "https://"+address+"/v1", certificates.CA, operator)
	if err := gateway.AwaitReady(t.Context(), in.api.Ready, startLimit); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, startLimit, in.isDescribed)
	return in, started
}

// isDescribed returns nil once there is the document that answers are compared
// with; a gateway that could not join it retries only after a second.
func (in installation) isDescribed() error {
	answer, err := in.api.Call(context.Background(), client.Request{Method: http.MethodGet, Path: "/openapi.json"})
	if err != nil {
		return err
	}
	return answer.Problem()
}

func merged(given map[string]string, own func(service string) map[string]string, name string) map[string]string {
	all := maps.Clone(given)
	if own != nil {
		maps.Copy(all, own(name))
	}
	return all
}

// serve builds and starts one service, and stops it in order when
// the test ends.
func serve(t *testing.T, main string, given map[string]string, address string) *programs.Process {
	t.Helper()
	variables := maps.Clone(given)
	variables["WEIR_LISTEN"] = address
	running := programs.Launch(t, programs.Build(t, main), variables)
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Errorf("%s did not stop in order: %v", main, err)
		}
		if t.Failed() {
			t.Logf("output of %s:\n%s", main, running.Output)
		}
	})
	return running
}
