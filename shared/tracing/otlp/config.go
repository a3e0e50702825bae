package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/tracing"
)

// Config sets where spans are exported. Embed it in a service's
// configuration. The names are OpenTelemetry's; its exporter itself
// reads more of them.
type Config struct {
	Exporter       string  `name:"traces-exporter" help:"Whether traces are exported where an endpoint is set: otlp or none." env:"OTEL_TRACES_EXPORTER" default:"otlp"`
	Endpoint       string  `name:"otlp-endpoint" help:"OTLP/HTTP collector, such as http://collector:4318; traces go to /v1/traces below it. Empty: no spans are made. The exporter reads OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION, _CERTIFICATE, _CLIENT_CERTIFICATE and _CLIENT_KEY, too, and OTEL_RESOURCE_ATTRIBUTES holds." env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	TracesEndpoint string  `name:"otlp-traces-endpoint" help:"The same for traces alone, with its path." env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"`
	Protocol       string  `name:"otlp-protocol" help:"http/protobuf is what there is." env:"OTEL_EXPORTER_OTLP_PROTOCOL" default:"http/protobuf"`
	TracesProtocol string  `name:"otlp-traces-protocol" help:"The same for traces alone." env:"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"`
	ServiceName    string  `name:"traces-service-name" help:"Name of the service in traces. Empty: weir- and the module." env:"OTEL_SERVICE_NAME"`
	Sampler        string  `name:"traces-sampler" help:"Which requests are sampled at their start: always_on, always_off, traceidratio, or one of these behind parentbased_, which is the same: nobody outside decides. Answers 5xx, and those after more than a second, are kept in any case." env:"OTEL_TRACES_SAMPLER" default:"parentbased_traceidratio"`
	Ratio          float64 `name:"traces-sampler-arg" help:"Part of the requests that a ratio samples, 0 to 1." env:"OTEL_TRACES_SAMPLER_ARG" default:"0.01"`
	FromProxies    bool    `name:"traces-from-proxies" help:"Continue the traces of trusted proxies, who then decide what is sampled. Set it where these replace the traceparent that a client sends, as the gateway does while it makes spans itself." env:"WEIR_TRACES_FROM_PROXIES"`
}

// Open returns the tracer of a service; nil, which makes no spans, if
// no endpoint is set. It connects to nothing.
func (c Config) Open(service string, metrics prometheus.Registerer, logger *slog.Logger) (*tracing.Tracer, error) {
	counted := newCounts(metrics)
	endpoint := c.endpoint()
	if endpoint == "" {
		return nil, nil
	}
	if err := c.validate(endpoint); err != nil {
		return nil, err
	}
	sampler, err := c.sampler()
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("cannot export traces to %q: %w", endpoint, err)
	}
	provider := newProvider(c.resource(service), sampler, newTail(newQueue(exporter, counted, logger)))
	return newTracer(service, provider, c.FromProxies), nil
}

// endpoint returns the URL that spans are sent to; "": none.
func (c Config) endpoint() string {
	switch {
	case c.Exporter == "none":
		return ""
	case c.TracesEndpoint != "":
		return c.TracesEndpoint
	case c.Endpoint != "":
		return strings.TrimSuffix(c.Endpoint, "/") + "/v1/traces"
	}
	return ""
}

// onlyProtocol is Weir's only export protocol.
const onlyProtocol = "http/protobuf"

func (c Config) validate(endpoint string) error {
	if c.Exporter != "" && c.Exporter != "otlp" {
		return fmt.Errorf("OTEL_TRACES_EXPORTER is %q: it can be otlp or none", c.Exporter)
	}
	if protocol := cmp.Or(c.TracesProtocol, c.Protocol, onlyProtocol); protocol != onlyProtocol {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: traces are exported by %s", protocol, onlyProtocol)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		return errors.New("OTEL_EXPORTER_OTLP_ENDPOINT is no URL such as http://collector:4318")
	}
	return nil
}

func (c Config) sampler() (sdktrace.Sampler, error) {
	switch strings.TrimPrefix(c.Sampler, "parentbased_") {
	case "always_on":
		return sampler{sdktrace.AlwaysSample()}, nil
	case "always_off":
		return sampler{sdktrace.NeverSample()}, nil
	case "", "traceidratio":
		if c.Ratio < 0 || c.Ratio > 1 {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %v: it can be 0 to 1", c.Ratio)
		}
		return sampler{sdktrace.TraceIDRatioBased(c.Ratio)}, nil
	}
	return nil, fmt.Errorf("OTEL_TRACES_SAMPLER is %q: it can be always_on, always_off or traceidratio, each also behind parentbased_", c.Sampler)
}

func (c Config) resource(service string) *resource.Resource {
	named := resource.NewSchemaless(attribute.String("service.name", cmp.Or(c.ServiceName, "weir-"+service)))
	given, err := resource.New(context.Background(), resource.WithFromEnv())
	if err != nil {
		return named // unreadable attributes are left out
	}
	merged, err := resource.Merge(given, named)
	if err != nil {
		return named
	}
	return merged
}

// Limits of a span.
const (
	maxAttributes = 16
	maxText       = 128
)

func newProvider(described *resource.Resource, sampler sdktrace.Sampler, tail *tail) *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(
		sdktrace.WithResource(described), sdktrace.WithSampler(sampler), sdktrace.WithSpanProcessor(tail),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeCountLimit: maxAttributes, AttributeValueLengthLimit: maxText, LinkCountLimit: tracing.MaxLinks,
			AttributePerLinkCountLimit: 1, AttributePerEventCountLimit: 1, EventCountLimit: 1,
		}),
	)
}

func newTracer(service string, provider *sdktrace.TracerProvider, continues bool) *tracing.Tracer {
	return tracing.New(service, provider, continues, func() {
		_ = provider.Shutdown(context.Background()) // only spans may be lost
	})
}

// A sampler decides at the start of a trace. Unsampled requests are
// recorded too: their end may keep them (see tail).
type sampler struct{ head sdktrace.Sampler }

// ShouldSample keeps a parent's decision. A transaction begins only if
// one of its records is sampled.
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	sampled := parent.IsSampled()
	if !parent.IsValid() {
		sampled = p.Kind == trace.SpanKindConsumer || s.head.ShouldSample(p).Decision == sdktrace.RecordAndSample
	}
	if sampled {
		return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly}
}

// Description is for OpenTelemetry.
func (s sampler) Description() string { return "Weir{" + s.head.Description() + "}" }
