package watermillbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/lifecycle"
)

// RouterConfig configures what a Router does around its
// handlers. Zero means the default.
type RouterConfig struct {
	// Park keeps a message that can never be handled, before it is
	// acknowledged. After an error, or without Park, the message comes again.
	Park func(ctx context.Context, m *message.Message, reason error) error

	// Observe is called after each delivery with its duration
	// and error; may be nil.
	Observe func(handler string, took time.Duration, err error)

	Attempts     int           // of a delivery before the message returns to the subscriber; default 5
	FirstPause   time.Duration // before the second attempt, then doubling; default 20 ms
	LongestPause time.Duration // between attempts; default 2 s
	CloseTimeout time.Duration // how long handlers may run on when the router closes; default 10 s

	Clock func() time.Time // for Observe; default the system's
}

func (c RouterConfig) withDefaults() RouterConfig {
	c.Attempts = cmp.Or(c.Attempts, 5)
	c.FirstPause = cmp.Or(c.FirstPause, 20*time.Millisecond)
	c.LongestPause = cmp.Or(c.LongestPause, 2*time.Second)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, 10*time.Second)
	if c.Clock == nil {
		c.Clock = clock.Now
	}
	if c.Observe == nil {
		c.Observe = func(string, time.Duration, error) {}
	}
	return c
}

// NewRouter returns a Watermill router with these middlewares, from the
// outside in. Handlers add none of their own.
//
//  1. recover: no panic further in, middlewares included, may end the process
//  2. trace: before logs and measurements, so that all carry the message's ids
//  3. observe: outside of parking and retries, so that it sees one delivery as the subscriber does, with its whole time and outcome
//  4. park: only permanent errors, and outside of retry, so that it gets those that retries made permanent
//  5. retry: transient errors, a few times; then the message returns to the subscriber, which offers it again: it is never lost
//  6. recover again, innermost: a handler's panic is an error to retry and, if it lasts, to park
func NewRouter(cfg RouterConfig, logger *slog.Logger) (*message.Router, error) {
	cfg = cfg.withDefaults()
	r, err := message.NewRouter(message.RouterConfig{CloseTimeout: cfg.CloseTimeout}, watermill.NewSlogLogger(logger))
	if err != nil {
		return nil, fmt.Errorf("cannot make a router: %w", err)
	}
	r.AddMiddleware(recovering, tracing, cfg.observing, cfg.parking(logger), cfg.retrying(logger), recovering)
	return r, nil
}

// recovering turns a panic into an error.
func recovering(next message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) (out []*message.Message, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = &bus.PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		return next(m)
	}
}

// passedOn are the headers that a message's handler passes on to
// what it publishes.
var passedOn = [...]string{"traceparent", "tracestate", "correlation_id"}

// tracing copies trace context and correlation from the message to the
// handler's results, unless the handler set its own.
func tracing(next message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) ([]*message.Message, error) {
		out, err := next(m)
		for _, produced := range out {
			for _, name := range passedOn {
				if value := m.Metadata[name]; value != "" && produced.Metadata[name] == "" {
					produced.Metadata[name] = value
				}
			}
		}
		return out, err
	}
}

func (c RouterConfig) observing(next message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) ([]*message.Message, error) {
		began := c.Clock()
		out, err := next(m)
		c.Observe(message.HandlerNameFromCtx(m.Context()), c.Clock().Sub(began), err)
		return out, err
	}
}

func (c RouterConfig) parking(logger *slog.Logger) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) {
			out, err := next(m)
			if err == nil || c.Park == nil || !bus.IsPermanent(err) {
				return out, err
			}
			logger.Error("message cannot be handled, parking it", "message", m.UUID, "error", err)
			if parking := c.Park(m.Context(), m, err); parking != nil {
				return nil, fmt.Errorf("cannot park message %q: %w", m.UUID, parking)
			}
			return nil, nil
		}
	}
}

func (c RouterConfig) retrying(logger *slog.Logger) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) {
			for failures := 1; ; failures++ {
				out, err := next(m)
				if err == nil || bus.IsPermanent(err) || m.Context().Err() != nil {
					return out, err
				}
				if failures >= c.Attempts {
					return nil, spent(err)
				}
				logger.Warn("message not handled yet", "message", m.UUID, "failures", failures, "error", err)
				lifecycle.Pause(m.Context(), clock.Backoff(failures, c.FirstPause, c.LongestPause))
			}
		}
	}
}

// spent returns the error of the last attempt: a lasting panic is
// permanent, any other error transient.
func spent(err error) error {
	var panicked *bus.PanicError
	if errors.As(err, &panicked) {
		return bus.Permanent(err)
	}
	return err
}
