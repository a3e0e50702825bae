package watermillbus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/watermillbus"
	"github.com/weirlog/weir/shared/testenv"
)

// What a handler's outcomes lead to, with the order of middlewares.
func TestRouterOutcomes(t *testing.T) {
	t.Parallel()
	passing, final := errors.New("passing"), errors.New("final")
	for name, c := range map[string]struct {
		outcomes []func() error // of each attempt in turn; the last one stays
		attempts int            // until the message is done
		parked   bool
	}{
		"handled":                      {[]func() error{func() error { return nil }}, 1, false},
		"passing error heals":          {[]func() error{func() error { return passing }, func() error { return nil }}, 2, false},
		"more errors than attempts":    {[]func() error{func() error { return passing }, func() error { return passing }, func() error { return passing }, func() error { return nil }}, 4, false},
		"permanent is parked at once":  {[]func() error{func() error { return bus.Permanent(final) }}, 1, true},
		"panic once is an error":       {[]func() error{func() error { panic("once") }, func() error { return nil }}, 2, false},
		"panic for ever is parked":     {[]func() error{func() error { panic("ever") }}, 3, true},
		"permanent after passing ones": {[]func() error{func() error { return passing }, func() error { return bus.Permanent(final) }}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			parked := make(chan error, 10)
			seen := make(chan error, 10)
			r, err := watermillbus.NewRouter(watermillbus.RouterConfig{
				Attempts: 3, FirstPause: time.Millisecond,
				Park:    func(_ context.Context, _ *message.Message, reason error) error { parked <- reason; return nil },
				Observe: func(_ string, _ time.Duration, err error) { seen <- err },
			}, testenv.Logger(t))
			if err != nil {
				t.Fatal(err)
			}
			channel := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
			r.AddConsumerHandler("test", "topic", channel, func(*message.Message) error {
				attempts++
				return c.outcomes[min(attempts, len(c.outcomes))-1]()
			})
			bustest.Run(t, r.Run)
			<-r.Running()
			if err := channel.Publish("topic", message.NewMessage("id", nil)); err != nil {
				t.Fatal(err)
			}
			for err := <-seen; err != nil; err = <-seen {
			}
			if attempts != c.attempts || (len(parked) > 0) != c.parked {
				t.Errorf("%d attempts, parked %d times, want %d and %v", attempts, len(parked), c.attempts, c.parked)
			}
			r.Close()
		})
	}
}

// Messages that a handler publishes carry the trace of the one that it handled.
func TestRouterPropagatesTraces(t *testing.T) {
	t.Parallel()
	r, err := watermillbus.NewRouter(watermillbus.RouterConfig{}, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	channel := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	out, err := channel.Subscribe(t.Context(), "out")
	if err != nil {
		t.Fatal(err)
	}
	r.AddHandler("test", "in", channel, "out", channel, func(*message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("produced", nil)}, nil
	})
	bustest.Run(t, r.Run)
	<-r.Running()
	m := message.NewMessage("id", nil)
	m.Metadata["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if err := channel.Publish("in", m); err != nil {
		t.Fatal(err)
	}
	if got := <-out; got.Metadata["traceparent"] != m.Metadata["traceparent"] {
		t.Errorf("metadata is %v", got.Metadata)
	}
	r.Close()
}
