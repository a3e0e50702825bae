package ingest_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
)

// The spans of a receipt are few for any event times. Near ones are an
// hour wide; none mixes past and future, or near and far.
func TestSpans(t *testing.T) {
	type ends struct{ min, max int64 }
	spans := map[ingest.Span]ends{}
	random := rand.New(rand.NewPCG(1, 1))
	add := func(seconds int64) {
		at := ingest.Instant{Seconds: seconds}
		span := ingest.SpanOf(at, received)
		known, again := spans[span]
		if !again {
			known = ends{seconds, seconds}
		}
		spans[span] = ends{min(known.min, seconds), max(known.max, seconds)}
	}
	const year0, year9999 = -62_167_219_200, 253_402_300_799
	now := received.Unix()
	for range 100_000 {
		add(year0 + random.Int64N(year9999-year0))
		distance := int64(1) << random.IntN(38)
		add(max(year0, min(year9999, now+random.Int64N(2*distance)-distance)))
	}
	add(year0)
	add(year9999)
	if len(spans) > ingest.MaxSpans {
		t.Errorf("%d spans, want at most %d", len(spans), ingest.MaxSpans)
	}
	hour := int64(time.Hour / time.Second)
	for span, of := range spans {
		near := min(max(of.min-now, now-of.min), max(of.max-now, now-of.max)) <= hour
		if near && of.max-of.min >= hour || !near && (of.min < now) != (of.max < now) {
			t.Errorf("%v reaches from %d to %d s after its receipt", span, of.min-now, of.max-now)
		}
	}
}
