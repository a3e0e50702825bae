//go:build !race

package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/weirlog/weir/shared/bus"
)

// The suite's own Reconnect. Watermill v1.5.1 appends to the slice of published messages in one goroutine and reads it in another
// (pubsub/tests/test_pubsub.go, TestReconnect), so the race detector fails it whatever is tested, and it fails itself when the
// last message arrives before its publisher has noted it. Hence no race detector here, and a pause before the last ones;
// TestReconnect does the same without either.
func TestSuiteReconnect(t *testing.T) {
	brokers, restart := restartable(t)
	f := features(tests.Features{ConsumerGroups: true, RestartServiceCommand: restart})
	tests.TestReconnect(t, tests.TestContext{TestID: tests.NewTestID(), Features: f}, func(t *testing.T) (message.Publisher, message.Subscriber) {
		p, s := pair(t, brokers, "test.reconnect", false)
		return p, patientSubscriber{s.(*bus.Subscriber)}
	})
}

// patientSubscriber pauses before each of the last messages of the suite's Reconnect.
type patientSubscriber struct{ *bus.Subscriber }

func (s patientSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := s.Subscriber.Subscribe(ctx, topic)
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		seen := make(map[string]bool)
		for m := range in {
			if seen[m.UUID] = true; len(seen) > 9_995 {
				time.Sleep(200 * time.Millisecond)
			}
			out <- m
		}
	}()
	return out, err
}
