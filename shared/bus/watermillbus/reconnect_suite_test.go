//go:build !race

package watermillbus_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/watermillbus"
	"github.com/weirlog/weir/shared/testenv"
)

// The suite's own Reconnect, in its three shapes. Watermill v1.5.1
// appends to the slice of published messages in one goroutine and reads
// it in another (pubsub/tests/test_pubsub.go, TestReconnect), so it
// always fails under the race detector. It also fails if the last
// message arrives before its publisher has recorded it. Hence no race
// detector here, and the last message is delivered once all are
// recorded; TestReconnect is for the race detector.
func TestSuiteReconnect(t *testing.T) {
	for name, shape := range map[string]struct {
		group    string
		keyed    bool
		features tests.Features
	}{
		"unordered":       {"test.reconnect", false, tests.Features{ConsumerGroups: true}},
		"ordered":         {"test.reconnect.keyed", true, tests.Features{ConsumerGroups: true, GuaranteedOrder: true}},
		"without a group": {"", true, tests.Features{GuaranteedOrder: true, NewSubscriberReceivesOldMessages: true}},
	} {
		t.Run(name, func(t *testing.T) {
			brokers, restart := restartable(t)
			silence(t)
			f := features(shape.features)
			f.RestartServiceCommand = restart
			tests.TestReconnect(t, tests.TestContext{TestID: tests.NewTestID(), Features: f}, func(t *testing.T) (message.Publisher, message.Subscriber) {
				p, s := pair(t, brokers, shape.group, shape.keyed)
				return endingPublisher{p}, patientSubscriber{s.(*watermillbus.Subscriber), t}
			})
		})
	}
}

// silence drops what the suite prints: two lines for each message,
// which hide why a test failed.
func silence(t *testing.T) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = null
	t.Cleanup(func() {
		os.Stdout = stdout
		null.Close()
	})
}

// endingPublisher ends the suite's publishers once it is closed: those
// of a failed test would never stop.
type endingPublisher struct{ message.Publisher }

func (p endingPublisher) Publish(topic string, messages ...*message.Message) error {
	err := p.Publisher.Publish(topic, messages...)
	if errors.Is(err, bus.ErrClosed) {
		return nil
	}
	return err
}

// patientSubscriber holds the last message of the suite's Reconnect
// back until the suite has recorded it as published.
type patientSubscriber struct {
	*watermillbus.Subscriber
	t *testing.T
}

func (s patientSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := s.Subscriber.Subscribe(ctx, topic)
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		seen := make(map[string]bool)
		for m := range in {
			if seen[m.UUID] = true; len(seen) == 10_000 {
				testenv.Eventually(s.t, bustest.Timeout, everythingNoted)
			}
			out <- m
		}
	}()
	return out, err
}

// everythingNoted returns nil once nothing publishes in TestReconnect,
// and the recording goroutine waits.
func everythingNoted() error {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for g := range strings.SplitSeq(string(stacks), "\n\n") {
		frames, _, _ := strings.Cut(g, "\ncreated by ")
		head, _, _ := strings.Cut(frames, "\n")
		noting := strings.Contains(frames, "pubsub/tests.TestReconnect.func2(")
		switch {
		case noting && strings.Contains(head, "[chan receive"):
		case noting, strings.Contains(frames, "pubsub/tests.TestReconnect.func3("):
			return errors.New("still at work: " + head)
		}
	}
	return nil
}
