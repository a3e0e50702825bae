package weir

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestACallAllocatesOnce(t *testing.T) {
	c, err := open(Options{BaseURL: "https://weir.test/v1", APIKey: testKey}.withDefaults(), stuck{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(NewHandler(c, HandlerOptions{})).With("service", "cart").WithGroup("order")
	if n := testing.AllocsPerRun(1000, func() { log.Info("order placed", "id", 1234567, "customer", "c_81723", "total", 99.5, "paid", true) }); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_ = c.Close(ctx)
}

// discards accepts all at once.
type discards struct{}

func (discards) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"processed":1,"rejected":0}`))}, nil
}

// stuck answers nothing until the end.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func benchmarked(b *testing.B, transport http.RoundTripper) *Client {
	c, err := open(Options{BaseURL: "https://weir.test/v1", APIKey: testKey}.withDefaults(), transport)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// BenchmarkCall measures what a call of slog costs its caller, beside the
// handler of the standard library that writes to nothing. caller-ns/op is the
// processor time of its thread, which a busy machine does not change; ns/op
// and allocs/op include what compresses and sends in the background.
func BenchmarkCall(b *testing.B) {
	for _, handler := range []struct {
		name string
		h    func(b *testing.B) slog.Handler
	}{
		{"slog.JSONHandler", func(b *testing.B) slog.Handler { return slog.NewJSONHandler(io.Discard, nil) }},
		{"weir, queue full", func(b *testing.B) slog.Handler { return NewHandler(benchmarked(b, stuck{}), HandlerOptions{}) }},
		{"weir, with batches", func(b *testing.B) slog.Handler { return NewHandler(benchmarked(b, discards{}), HandlerOptions{}) }},
	} {
		b.Run(handler.name, func(b *testing.B) {
			log := slog.New(handler.h(b)).With("service", "cart", "version", "1.2.3")
			defer callerTime(b)()
			for b.Loop() {
				log.Info("order placed", "order", 1234567, "customer", "c_81723", "total", 99.5, "paid", true)
			}
		})
	}
	b.Run("weir, error with stack", func(b *testing.B) {
		log, err := slog.New(NewHandler(benchmarked(b, discards{}), HandlerOptions{})), errors.New("declined")
		defer callerTime(b)()
		for b.Loop() {
			log.Error("no order", "order", 1234567, "error", err)
		}
	})
}
