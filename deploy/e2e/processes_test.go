package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/programs"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

// Every service as a separate process, behind the gateway.
func TestProcesses(t *testing.T) {
	kafkatest.Parallel(t)
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
	testenv.Must(t, err)
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
	testenv.Must(t, gateway.AwaitReady(t.Context(), in.api.Ready, testenv.Patience))
	testenv.Eventually(t, in.isDescribed)
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

// exportTo makes every module export to a collector, and posts sampled.
func exportTo(modules *allinone.Modules, collector *tracingtest.Collector) {
	modules.Ingest.Tracing.Endpoint, modules.Ingest.Tracing.Ratio = collector.URL, 1
	modules.Ledger.Tracing.Endpoint = collector.URL
	modules.Grouping.Tracing.Endpoint = collector.URL
	modules.Tenants.Tracing.Endpoint = collector.URL
}

// traced posts once: the spans reach from the request to each resulting
// commit, and hold neither the content nor the key.
func traced(t *testing.T, in installation, collector *tracingtest.Collector) (request tracingtest.Span) {
	t.Helper()
	const canary = "canary-of-a-trace"
	who := in.tenant(t, t.Context(), "traced", "scale")
	entry := `{"timestamp":"2026-11-21T09:30:00Z","level":"error","message":"` + canary + `","error":{"type":"` + canary + `","message":"` + canary + `"}}`
	_, err := in.api.Post(t.Context(), who.key, plainly(body(entry)))
	testenv.Must(t, err)
	testenv.Eventually(t, func() error {
		request, err = reaches(collector.Spans(), who.organization)
		return err
	})
	for _, secret := range []string{canary, who.key, in.operator} {
		if bytes.Contains(collector.Raw(), []byte(secret)) {
			t.Errorf("%q was exported", secret)
		}
	}
	return request
}

// tracedBehindGateway is traced with the gateway as a separate process,
// where the trace begins.
func tracedBehindGateway(t *testing.T, in installation, collector *tracingtest.Collector) {
	request := traced(t, in, collector)
	testenv.Eventually(t, func() error {
		spans := collector.Spans()
		at := slices.IndexFunc(spans, func(s tracingtest.Span) bool { return s.ID == request.Parent })
		if at < 0 {
			return fmt.Errorf("nothing exported is the parent %q of the request", request.Parent)
		}
		if first := spans[at]; first.Service != "weir-gateway" || first.Trace != request.Trace || first.Parent != "" || first.Name != "POST" {
			t.Errorf("the request is below %+v", first)
		}
		return nil
	})
}

// reaches returns the span of an organization's post once its
// trace is complete.
func reaches(spans []tracingtest.Span, organization string) (request tracingtest.Span, err error) {
	at := slices.IndexFunc(spans, func(s tracingtest.Span) bool {
		return s.Name == "POST /v1/logs" && s.Attributes["weir.organization"] == organization && s.Attributes["http.response.status_code"] == "200"
	})
	if at < 0 {
		return request, fmt.Errorf("no span of the request among %d", len(spans))
	}
	request = spans[at]
	for _, name := range []string{"authenticate", "publish weir.logs.v1"} {
		if !slices.ContainsFunc(spans, func(s tracingtest.Span) bool { return s.Name == name && s.Parent == request.ID }) {
			return request, fmt.Errorf("no span %q under the request", name)
		}
	}
	for _, service := range []string{"weir-ingest", "weir-ledger", "weir-grouping"} {
		if !commits(spans, service, request.ID) {
			return request, fmt.Errorf("no transaction of %s that is linked to the request and commits", service)
		}
	}
	return request, nil
}

// commits reports whether a service has committed a transaction linked
// to a request.
func commits(spans []tracingtest.Span, service, request string) bool {
	return slices.ContainsFunc(spans, func(transaction tracingtest.Span) bool {
		return transaction.Service == service && transaction.Name == "process weir.logs.v1" && slices.Contains(transaction.Links, request) &&
			slices.ContainsFunc(spans, func(s tracingtest.Span) bool {
				return s.Parent == transaction.ID && s.Name == "postgres commit" && !s.Failed
			})
	})
}
