package state_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// shifted is the system's clock plus what a test adds.
type shifted struct{ ahead atomic.Int64 }

func (c *shifted) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// kept is a reader that keeps a snapshot.
type kept struct {
	brokers []string
	topic   string
	dir     string
	clock   shifted
}

// run reads to the end and calls while. It returns the state, and how
// many records were applied until it was ready.
func (k *kept) run(t *testing.T, while func(s *table)) (found map[string]string, read int) {
	t.Helper()
	s := &table{rows: make(map[string]string)}
	var mu sync.Mutex
	n := 0
	r := state.NewReader(state.Config{Brokers: k.brokers, Topic: k.topic, SnapshotDir: k.dir, Clock: k.clock.now, Apply: func(r bus.Record) error {
		mu.Lock()
		n++
		mu.Unlock()
		return s.apply(r)
	}}, testenv.Logger(t))
	stop := bustest.Run(t, r.Run)
	defer stop()
	select {
	case <-r.Ready():
	case <-time.After(testenv.Patience):
		t.Fatal("not ready")
	}
	mu.Lock()
	read = n
	mu.Unlock()
	if while != nil {
		while(s)
	}
	testenv.Eventually(t, func() error { // until a broker has confirmed it
		if age := r.Age(); age > 5*time.Second {
			return fmt.Errorf("age is %v", age)
		}
		return nil
	})
	return s.copy(), read
}

func newKept(t *testing.T, topic string, config map[string]string) (*kept, *publisher.Publisher) {
	t.Helper()
	k := &kept{brokers: kafkatest.Shared(t), topic: topic, dir: filepath.Join(t.TempDir(), "state")}
	bustest.Ensure(t, k.brokers, topic, 1, config)
	return k, bustest.NewPublisher(t, publisher.Config{Brokers: k.brokers})
}

var compacted = map[string]string{"cleanup.policy": "compact"}

// fillKeys sets keys 0 to 9, ten times each, the last time to value.
func fillKeys(t *testing.T, p *publisher.Publisher, topic, value string) map[string]string {
	t.Helper()
	want := make(map[string]string)
	for i := range 100 {
		key, v := fmt.Sprint(i%10), fmt.Sprint(i)
		if i >= 90 {
			v = value
		}
		want[key] = v
		m := put(key, []byte(v))
		m.Metadata["ce_type"] = "test"
		testenv.Must(t, p.Publish(topic, m))
	}
	return want
}

// A reader with a snapshot reads what came after it, deletions
// included, and gets the same state as one without.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	k, p := newKept(t, "test.kept", compacted)
	want := fillKeys(t, p, k.topic, "first")
	if state, read := k.run(t, nil); read != 100 || !maps.Equal(state, want) {
		t.Fatalf("read %d records into %v", read, state)
	}
	for _, m := range []struct {
		key   string
		value []byte
	}{{"3", nil}, {"4", []byte("second")}, {"new", []byte("second")}} {
		testenv.Must(t, p.Publish(k.topic, put(m.key, m.value)))
	}
	delete(want, "3")
	want["4"], want["new"] = "second", "second"
	for _, most := range []int{13, 10} { // ten keys and three records; then only the keys
		if state, read := k.run(t, nil); read > most || !maps.Equal(state, want) {
			t.Fatalf("applied %d records, want %d at most; state %v", read, most, state)
		}
	}
	testenv.Must(t, os.RemoveAll(k.dir))
	if state, read := k.run(t, nil); read != 103 || !maps.Equal(state, want) {
		t.Fatalf("without the file: read %d records into %v", read, state)
	}
}

// Whatever happens to the file, the state is right, from the file or
// from the log.
func TestDamagedSnapshot(t *testing.T) {
	t.Parallel()
	k, p := newKept(t, "test.damaged", compacted)
	want := fillKeys(t, p, k.topic, "v")
	k.run(t, nil)
	path := filepath.Join(k.dir, k.topic+".state")
	good, err := os.ReadFile(path)
	testenv.Must(t, err)
	check := func(what string, file []byte, whole bool) {
		t.Helper()
		testenv.Must(t, os.WriteFile(path, file, 0o600))
		if state, read := k.run(t, nil); !maps.Equal(state, want) || whole != (read == 100) {
			t.Fatalf("%s: applied %d records, state %v", what, read, state)
		}
	}
	check("untouched", good, false)
	for _, n := range []int{0, 1, 7, 8, 9, len(good) / 2, len(good) - 32, len(good) - 1} { // snapshot_internal_test.go tries each
		check(fmt.Sprintf("cut to %d bytes", n), good[:n:n], true)
	}
	for _, i := range []int{0, 7, 8, 20, len(good) / 2, len(good) - 1} {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		check(fmt.Sprintf("byte %d changed", i), bad, true)
	}
	check("something behind it", append(append([]byte(nil), good...), 0), true)
}

// A snapshot counts only for its own log, and only while all later
// deletions are surely in that log.
func TestUselessSnapshot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config map[string]string
		spoil  func(t *testing.T, k *kept)
	}{
		"too old":             {compacted, func(_ *testing.T, k *kept) { k.clock.ahead.Add(int64(13 * time.Hour)) }},
		"from the future":     {compacted, func(_ *testing.T, k *kept) { k.clock.ahead.Add(-int64(time.Hour)) }},
		"topic is forgetful":  {map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "0"}, func(*testing.T, *kept) {}},
		"topic is not state":  {map[string]string{"cleanup.policy": "delete"}, func(*testing.T, *kept) {}},
		"topic expires too":   {map[string]string{"cleanup.policy": "compact,delete"}, func(*testing.T, *kept) {}},
		"topic was replaced":  {compacted, func(t *testing.T, k *kept) { bustest.ReplaceTopic(t, k.brokers, k.topic, 1, compacted) }},
		"file of another one": {compacted, otherFile},
	} {
		t.Run(name, func(t *testing.T) {
			k, p := newKept(t, "test.useless", c.config)
			bustest.ReplaceTopic(t, k.brokers, k.topic, 1, c.config) // left by the case before
			fillKeys(t, p, k.topic, "old")
			testenv.Must(t, p.Publish(k.topic, put("gone", []byte("old"))))
			k.run(t, nil)
			c.spoil(t, k)
			if name == "topic was replaced" {
				p = bustest.NewPublisher(t, publisher.Config{Brokers: k.brokers})
				want := fillKeys(t, p, k.topic, "new")
				fillKeys(t, p, k.topic, "new")
				if state, read := k.run(t, nil); read != 200 || !maps.Equal(state, want) {
					t.Fatalf("applied %d records, state %v", read, state)
				}
				return
			}
			if _, read := k.run(t, nil); read != 101 {
				t.Errorf("applied %d records, want the whole log", read)
			}
		})
	}
}

// otherFile replaces the snapshot by a valid one of another topic.
func otherFile(t *testing.T, k *kept) {
	other := &kept{brokers: k.brokers, topic: "test.other", dir: t.TempDir()}
	bustest.Ensure(t, k.brokers, other.topic, 1, compacted)
	fillKeys(t, bustest.NewPublisher(t, publisher.Config{Brokers: k.brokers}), other.topic, "other")
	other.run(t, nil)
	testenv.Must(t, os.Rename(filepath.Join(other.dir, other.topic+".state"), filepath.Join(k.dir, k.topic+".state")))
}

// A reader without an answer for longer than deletions are surely kept
// reads the whole log again and removes what is not in it; it does not
// apply again what it has seen.
func TestReaderWithoutAnswers(t *testing.T) {
	t.Parallel()
	k, p := newKept(t, "test.stale", compacted)
	want := fillKeys(t, p, k.topic, "v")
	k.run(t, func(s *table) {
		applied := 0
		k.clock.ahead.Add(int64(13 * time.Hour))
		testenv.Must(t, p.Publish(k.topic, put("3", nil), put("new", []byte("v"))))
		delete(want, "3")
		want["new"] = "v"
		testenv.Eventually(t, func() error {
			applied++
			if got := s.copy(); !maps.Equal(got, want) {
				return errors.New("not up to date")
			}
			return nil
		})
	})
}

// A directory that cannot be written costs the snapshot, not the state.
func TestSnapshotCannotBeWritten(t *testing.T) {
	t.Parallel()
	k, p := newKept(t, "test.unwritable", compacted)
	want := fillKeys(t, p, k.topic, "v")
	if err := os.WriteFile(k.dir, nil, 0o600); err != nil { // a file in place of the directory
		t.Fatal(err)
	}
	for range 2 {
		if state, read := k.run(t, nil); read != 100 || !maps.Equal(state, want) {
			t.Fatalf("read %d records into %v", read, state)
		}
	}
}
