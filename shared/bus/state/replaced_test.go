package state_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// The state of a replaced topic becomes that of the new one: keys and
// partitions of the old one alone are removed.
func TestReaderOfAReplacedTopic(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.state.replaced"
	compacted := map[string]string{"cleanup.policy": "compact"}
	bustest.Ensure(t, brokers, topic, 2, compacted)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	for _, key := range []string{"both", "old", "older"} {
		if err := p.Publish(topic, put(key, []byte("old"))); err != nil {
			t.Fatal(err)
		}
	}
	var clock shifted
	s := &table{rows: make(map[string]string)}
	r := state.NewReader(state.Config{Brokers: brokers, Topic: topic, Apply: s.apply, Clock: clock.now}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	<-r.Ready()
	bustest.ReplaceTopic(t, brokers, topic, 1, compacted)
	p = bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	want := map[string]string{"both": "new", "1": "new", "2": "new", "3": "new"}
	for key, value := range want {
		if err := p.Publish(topic, put(key, []byte(value))); err != nil {
			t.Fatal(err)
		}
	}
	clock.ahead.Add(int64(time.Hour)) // shows a partition that is no longer confirmed
	testenv.Eventually(t, bustest.Timeout, func() error {
		if got := s.copy(); !maps.Equal(got, want) {
			return fmt.Errorf("state is %v, want %v", got, want)
		}
		if age := r.Age(); age > 30*time.Minute {
			return fmt.Errorf("age is %v", age)
		}
		return nil
	})
}

// After a topic was replaced its state stays as it is, and is not whole,
// until what the old one had is published again.
func TestReplacedTopicIsRepaired(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.state.repaired"
	compacted := map[string]string{"cleanup.policy": "compact"}
	bustest.Ensure(t, brokers, topic, 1, compacted)
	publish := func(key string) {
		t.Helper()
		if err := bustest.NewPublisher(t, publisher.Config{Brokers: brokers}).Publish(topic, put(key, []byte("v"))); err != nil {
			t.Fatal(err)
		}
	}
	publish("kept")
	publish("gone")
	s := &table{rows: make(map[string]string)}
	r := state.NewReader(state.Config{Brokers: brokers, Topic: topic, Apply: s.apply, Marker: "marker"}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	<-r.Ready()
	if err := r.Whole(); err != nil {
		t.Fatal(err)
	}
	bustest.ReplaceTopic(t, brokers, topic, 1, compacted)
	testenv.Eventually(t, bustest.Timeout, func() error {
		if !r.Lacks() {
			return errors.New("the loss is not noticed")
		}
		return nil
	})
	publish("kept")
	publish("new")
	holds := func(want map[string]string, whole bool) {
		t.Helper()
		testenv.Eventually(t, bustest.Timeout, func() error {
			if got, err := s.copy(), r.Whole(); !maps.Equal(got, want) || (err == nil) != whole {
				return fmt.Errorf("state %v, want %v, whole %t: %w", got, want, whole, err)
			}
			return nil
		})
	}
	holds(map[string]string{"kept": "v", "gone": "v", "new": "v"}, false)
	publish("marker")
	holds(map[string]string{"kept": "v", "new": "v", "marker": "v"}, true)
}
