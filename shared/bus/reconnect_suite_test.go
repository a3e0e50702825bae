//go:build !race

package bus_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
)

// The suite's own Reconnect. Watermill v1.5.1 appends to the slice of published messages in one goroutine and reads it in another
// (pubsub/tests/test_pubsub.go, TestReconnect), so the race detector fails it whatever is tested; TestReconnect does the same
// without the race.
func TestSuiteReconnect(t *testing.T) {
	brokers, restart := restartable(t)
	f := features(tests.Features{ConsumerGroups: true, RestartServiceCommand: restart})
	tests.TestReconnect(t, tests.TestContext{TestID: tests.NewTestID(), Features: f}, func(t *testing.T) (message.Publisher, message.Subscriber) {
		return pair(t, brokers, "test.reconnect", false)
	})
}
