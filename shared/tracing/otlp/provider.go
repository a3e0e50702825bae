package otlp

import (
	"context"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/weirlog/weir/shared/tracing"
)

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
