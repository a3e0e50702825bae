package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

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
	must(t, err)
	testenv.Eventually(t, viewTimeout, func() error {
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
	testenv.Eventually(t, viewTimeout, func() error {
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
