package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/port"
)

// table is a state in memory.
type table struct {
	mu   sync.Mutex
	rows map[string]string
}

func (s *table) apply(r bus.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Value == nil {
		delete(s.rows, string(r.Key))
		return nil
	}
	s.rows[string(r.Key)] = string(r.Value)
	return nil
}

func (s *table) copy() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.rows)
}

func put(key string, value []byte) *message.Message {
	m := message.NewMessage(key, value)
	m.Metadata[bus.KeyMetadata] = key
	return m
}

// A state reader is ready when it has the whole topic, then
// follows, tombstones included.
func TestReaderFollows(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.state.follows"
	bustest.Ensure(t, brokers, topic, 3, map[string]string{"cleanup.policy": "compact"})
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	want := make(map[string]string)
	for i := range 300 {
		key := fmt.Sprint(i % 100)
		want[key] = fmt.Sprint(i)
		testenv.Must(t, p.Publish(topic, put(key, []byte(want[key]))))
	}
	s := &table{rows: make(map[string]string)}
	r := state.NewReader(state.Config{Brokers: brokers, Topic: topic, Apply: s.apply}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	<-r.Ready()
	if got := s.copy(); !maps.Equal(got, want) {
		t.Fatalf("ready with %d rows, want %d", len(got), len(want))
	}
	testenv.Must(t, p.Publish(topic, put("7", nil)))
	testenv.Eventually(t, func() error {
		if _, there := s.copy()["7"]; there {
			return errors.New("tombstone not applied")
		}
		return nil
	})
	testenv.Eventually(t, func() error {
		if age := r.Age(); age > 2*time.Second {
			return fmt.Errorf("age of a live state is %v", age)
		}
		return nil
	})
}

// Records that Apply keeps stay unchanged, whatever is read after them.
func TestReaderLeavesRecordsAlone(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.state.kept"
	bustest.Ensure(t, brokers, topic, 2, map[string]string{"cleanup.policy": "compact"})
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, MaxBatchBytes: 100_000})
	const n = 2000
	var messages []*message.Message
	for i := range n {
		m := put(fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, 500))
		m.Metadata["ce_type"] = fmt.Sprint("type ", i)
		messages = append(messages, m)
	}
	testenv.Must(t, p.Publish(topic, messages...))
	var kept []bus.Record
	r := state.NewReader(state.Config{Brokers: brokers, Topic: topic, MaxBytes: 100_000, Apply: func(r bus.Record) error {
		kept = append(kept, r)
		return nil
	}}, testenv.Logger(t))
	stop := bustest.Run(t, r.Run)
	<-r.Ready()
	stop()
	if len(kept) != n {
		t.Fatalf("%d records, want %d", len(kept), n)
	}
	for _, r := range kept {
		i, err := strconv.Atoi(string(r.Key))
		if err != nil || !bytes.Equal(r.Value, messages[i].Payload) || r.Header("ce_type") != fmt.Sprint("type ", i) || r.Header("ce_id") != string(r.Key) {
			t.Fatalf("the record of key %q has changed: %q, %q", r.Key, r.Header("ce_type"), r.Value)
		}
	}
}

// An empty topic is ready at once, a missing topic once it exists.
func TestReaderWaitsForItsTopic(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.state.later"
	r := state.NewReader(state.Config{Brokers: brokers, Topic: topic, Apply: func(bus.Record) error { return nil }}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	select {
	case <-r.Ready():
		t.Fatal("ready without a topic")
	case <-time.After(200 * time.Millisecond):
	}
	bustest.Ensure(t, brokers, topic, 1, nil)
	select {
	case <-r.Ready():
	case <-time.After(testenv.Patience):
		t.Fatal("not ready with an empty topic")
	}
}

// A record that can't be applied stops no later one, is logged with its
// place, and is counted.
func TestReaderPassesOverWhatItCannotApply(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.unreadable"
	bustest.Ensure(t, brokers, topic, 1, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	testenv.Must(t, p.Publish(topic, put("good", []byte("1")), put("bad", []byte("2")), put("better", []byte("3"))))
	s, log, registry := &table{rows: make(map[string]string)}, &bytes.Buffer{}, telemetry.New()
	r := state.NewReader(state.Config{Brokers: brokers, Topic: topic, Metrics: registry.For("test"), Apply: func(r bus.Record) error {
		if string(r.Key) == "bad" {
			return errors.New("it is no number")
		}
		return s.apply(r)
	}}, slog.New(slog.NewTextHandler(log, nil)))
	if err := r.Complete(); err == nil {
		t.Error("complete before it has begun")
	}
	stop := bustest.Run(t, r.Run)
	<-r.Ready()
	stop()
	if err, got := r.Complete(), s.copy(); err != nil || !maps.Equal(got, map[string]string{"good": "1", "better": "3"}) {
		t.Errorf("%v %v", got, err)
	}
	for _, part := range []string{"topic=test.unreadable", "partition=0", "offset=1", "it is no number"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not contain %q: %s", part, log)
		}
	}
	bustest.Shows(t, registry, `weir_bus_state_passed_over_records_total{service="test",topic="test.unreadable"} 1`)
}

// Compaction leaves holes and batches without records, also at the end
// of the log: a reader passes all of them, and reconnects after the
// broker was away.
func TestReaderAndCompaction(t *testing.T) {
	t.Parallel()
	dir, topic := t.TempDir(), "test.compacted"
	open := func(port int) *kafka.Broker {
		b, err := kafka.Start(kafka.Config{Open: true, Dir: dir, Port: port, Logger: testenv.Logger(t)})
		testenv.Must(t, err)
		return b
	}
	port, err := port.Free()
	testenv.Must(t, err)
	broker := open(port)
	brokers := []string{broker.Addr()}
	bustest.Ensure(t, brokers, topic, 1, map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.ms": "1", "delete.retention.ms": "0"})
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	fill := func(rounds int) {
		for i := range rounds {
			var messages []*message.Message
			for k := range 50 {
				messages = append(messages, put(fmt.Sprint(k), fmt.Appendf(nil, "%d", i)))
			}
			testenv.Must(t, p.Publish(topic, messages...))
		}
	}
	fill(20)
	live := &table{rows: make(map[string]string)}
	follower := state.NewReader(state.Config{Brokers: brokers, Topic: topic, Apply: live.apply}, testenv.Logger(t))
	bustest.Run(t, follower.Run)
	<-follower.Ready()
	for range 3 { // the embedded broker compacts when it starts
		fill(20)
		testenv.Must(t, broker.Close())
		broker = open(port)
		s := &table{rows: make(map[string]string)}
		r := state.NewReader(state.Config{Brokers: brokers, Topic: topic, Apply: s.apply}, testenv.Logger(t))
		stop := bustest.Run(t, r.Run)
		select {
		case <-r.Ready():
		case <-time.After(testenv.Patience):
			t.Fatal("not ready on a compacted topic")
		}
		stop()
		if got := s.copy(); len(got) != 50 || got["49"] != "19" {
			t.Fatalf("state is %v", got)
		}
	}
	testenv.Must(t, p.Publish(topic, put("last", []byte("word"))))
	testenv.Eventually(t, func() error {
		if live.copy()["last"] != "word" {
			return errors.New("the reader that was there all the time has not seen the last word")
		}
		return nil
	})
	testenv.Must(t, broker.Close())
}

// A topic created while readers look for it is read by all of them,
// whatever each saw first.
func TestReaderWhileItsTopicIsMade(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Shared(t)
	for i := range 20 {
		topic := fmt.Sprintf("test.made.%d", i)
		tables := make([]*table, 5)
		for n := range tables {
			tables[n] = &table{rows: make(map[string]string)}
			bustest.Run(t, state.NewReader(state.Config{Brokers: brokers, Topic: topic, Apply: tables[n].apply}, testenv.Logger(t)).Run)
		}
		bustest.Ensure(t, brokers, topic, 1, nil)
		testenv.Must(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}).Publish(topic, put("key", []byte("value"))))
		for _, s := range tables {
			testenv.Eventually(t, func() error {
				if s.copy()["key"] != "value" {
					return errors.New("nothing was read")
				}
				return nil
			})
		}
	}
}

// A reader that a broker keeps refusing logs it above debug level, and
// continues once it may.
func TestRefusedReaderLogsIt(t *testing.T) {
	t.Parallel()
	const topic = "test.kept.away"
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.WithLogger(bustest.Quiet{}))
	testenv.Must(t, err)
	defer c.Close()
	refusal := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.KafkaStorageError, Count: -1})
	testenv.Must(t, bustest.NewPublisher(t, publisher.Config{Brokers: c.ListenAddrs()}).Publish(topic, put("key", []byte("value"))))
	logged := make(lines, 1000)
	s := &table{rows: make(map[string]string)}
	r := state.NewReader(state.Config{Brokers: c.ListenAddrs(), Topic: topic, Apply: s.apply}, slog.New(slog.NewTextHandler(logged, nil)))
	bustest.Run(t, r.Run)
	testenv.Eventually(t, func() error {
		select {
		case line := <-logged:
			if strings.Contains(line, "level=WARN") && strings.Contains(line, "partition 0") && strings.Contains(line, "Kafka Storage Error") {
				return nil
			}
			return errors.New(line)
		default:
			return errors.New("nothing was logged")
		}
	})
	refusal.Remove()
	select {
	case <-r.Ready():
	case <-time.After(testenv.Patience):
		t.Fatal("not ready although the broker answers again")
	}
}

// A state unconfirmed since its start grows old, even if it was empty at first.
func TestReaderThatReceivesNothingGrowsStale(t *testing.T) {
	t.Parallel()
	const topic = "test.unheard"
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.WithLogger(bustest.Quiet{}))
	testenv.Must(t, err)
	defer c.Close()
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	var clock shifted
	s := &table{rows: make(map[string]string)}
	r := state.NewReader(state.Config{Brokers: c.ListenAddrs(), Topic: topic, Apply: s.apply, Clock: clock.now}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	<-r.Ready()
	clock.ahead.Add(int64(time.Hour))
	if age := r.Age(); age < time.Hour {
		t.Errorf("age is %v, want an hour at least", age)
	}
}

// lines are a logger's output.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

// The state of a replaced topic becomes that of the new one: keys and
// partitions of the old one alone are removed.
func TestReaderOfAReplacedTopic(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.state.replaced"
	compacted := map[string]string{"cleanup.policy": "compact"}
	bustest.Ensure(t, brokers, topic, 2, compacted)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	for _, key := range []string{"both", "old", "older"} {
		testenv.Must(t, p.Publish(topic, put(key, []byte("old"))))
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
		testenv.Must(t, p.Publish(topic, put(key, []byte(value))))
	}
	clock.ahead.Add(int64(time.Hour)) // shows a partition that is no longer confirmed
	testenv.Eventually(t, func() error {
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
		testenv.Must(t, bustest.NewPublisher(t, publisher.Config{Brokers: brokers}).Publish(topic, put(key, []byte("v"))))
	}
	publish("kept")
	publish("gone")
	s := &table{rows: make(map[string]string)}
	r := state.NewReader(state.Config{Brokers: brokers, Topic: topic, Apply: s.apply, Marker: "marker"}, testenv.Logger(t))
	bustest.Run(t, r.Run)
	<-r.Ready()
	testenv.Must(t, r.Whole())
	bustest.ReplaceTopic(t, brokers, topic, 1, compacted)
	testenv.Eventually(t, func() error {
		if !r.Lacks() {
			return errors.New("the loss is not noticed")
		}
		return nil
	})
	publish("kept")
	publish("new")
	holds := func(want map[string]string, whole bool) {
		t.Helper()
		testenv.Eventually(t, func() error {
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

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }
