package otlp

import (
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

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
