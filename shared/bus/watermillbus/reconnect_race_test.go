//go:build race

package watermillbus_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/weirlog/weir/shared/bus/bustest"
)

// Ten thousand messages from a hundred publishers reach a subscriber
// while the broker is killed and started twice. This is the suite's
// TestReconnect for the race detector, without its data race:
// publishers record under a lock what they have published.
// TestSuiteReconnect is for all others.
func TestReconnect(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]struct {
		group string
		keyed bool
	}{"unordered": {"test.reconnect", false}, "ordered": {"test.reconnect.keyed", true}, "without a group": {"", true}} {
		t.Run(name, func(t *testing.T) { reconnect(t, "test.reconnect."+bustest.TopicName(name), shape.group, shape.keyed) })
	}
}

func reconnect(t *testing.T, topic, group string, keyed bool) {
	const total, publishers = 10_000, 100
	brokers, restart := restartable(t)
	publisher, subscriber := pair(t, brokers, group, keyed)
	bustest.Ensure(t, brokers, topic, 10, nil)
	messages, err := subscriber.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	numbers := make(chan int)
	work.Go(func() {
		defer close(numbers)
		for i := range total {
			numbers <- i
			if i == total/3 || i == total/2 {
				work.Go(func() { command(t, restart) })
			}
		}
	})
	var mu sync.Mutex
	var published message.Messages
	for range publishers {
		work.Go(func() {
			for range numbers {
				m := publishUntilWritten(publisher, topic)
				mu.Lock()
				published = append(published, m)
				mu.Unlock()
			}
		})
	}
	received := receive(t, messages, total)
	work.Wait()
	tests.AssertAllMessagesReceived(t, published, received)
}

// publishUntilWritten publishes its own message at a random time, as
// the suite does.
func publishUntilWritten(p message.Publisher, topic string) *message.Message {
	m := message.NewMessage(fmt.Sprintf("%x", rand.Uint64()), []byte("x"))
	if rand.IntN(10) == 0 {
		time.Sleep(50 * time.Millisecond) // spreads the publishers, as the suite does
	}
	for p.Publish(topic, m) != nil {
		time.Sleep(100 * time.Millisecond) // gives a stopped broker a moment
	}
	return m
}

func command(t *testing.T, line []string) {
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		t.Errorf("cannot restart the broker: %v: %s", err, out)
	}
}
