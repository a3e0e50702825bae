package tracing

import (
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const sampledClient = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// A proxy that samples every trace is followed within a rate; requests
// beyond it continue unsampled.
func TestFollowedIsBounded(t *testing.T) {
	tracer := New("ingest", sdktrace.NewTracerProvider(), true, func() {})
	now := time.Now()
	tracer.clock = func() time.Time { return now }
	for _, want := range []int{followedBurst + 1, followedPerSecond} { // a bucket that is just empty gives one more
		sampled := 0
		for range 2 * followedBurst {
			_, span := tracer.Proxied(t.Context(), sampledClient)
			if span.SpanContext().IsSampled() {
				sampled++
			}
			span.End()
		}
		if sampled != want {
			t.Errorf("%d are sampled, want %d", sampled, want)
		}
		now = now.Add(time.Second)
	}
}

// A statement is named by its first word, if that is known.
func TestOperation(t *testing.T) {
	for sql, want := range map[string]string{
		"commit": "commit", "\n\tSELECT 1": "select", "INSERT INTO x": "insert", "secret": "query", "": "query", "-- why\nSELECT": "query",
	} {
		if got := operationOf(sql); got != want {
			t.Errorf("%q: %q, want %q", sql, got, want)
		}
	}
}
