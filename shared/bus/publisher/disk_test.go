package publisher_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
)

// Callers learn soon that the broker's disk refuses their messages, long
// before their time is over, and publish again once it takes them.
func TestRefusedByTheDisk(t *testing.T) {
	t.Parallel()
	const topic = "test.disk"
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.WithLogger(bustest.Quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: c.ListenAddrs(), DeliveryTimeout: time.Hour, CloseTimeout: time.Second})
	full := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.KafkaStorageError, Count: -1})
	for range 20 {
		if err := p.Publish(topic, message.NewMessage("refused", nil)); !errors.Is(err, bus.ErrUnknownOutcome) {
			t.Fatalf("%v, want %v", err, bus.ErrUnknownOutcome)
		}
	}
	full.Remove()
	bustest.Publish(t, p, topic, 0, 3, 1)
}
