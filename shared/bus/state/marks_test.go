package state_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/testenv"
)

const marked = "test.state.marked"

// A losing log has a marker and a record that a process has read, and
// goes back to before that record.
type losing struct {
	*bustest.Forgetful
	pool *pgxpool.Pool
}

func newLosing(t *testing.T) losing {
	t.Helper()
	l := losing{bustest.NewForgetful(t), bustest.Database(t)}
	bustest.Ensure(t, l.Brokers(), marked, 1, compacted)
	l.publish(t, "a", "marker", "b")
	l.Remember()
	l.publish(t, "c")
	reader, stop := l.start(t)
	complete(t, reader)
	bustest.MarksKept(t, l.pool, l.Brokers(), marked)
	stop()
	return l
}

func (l losing) publish(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		bustest.PublishAll(t, l.Brokers(), marked, put(key, []byte("v")))
	}
}

func (l losing) start(t *testing.T) (reader *state.Reader, stop func()) {
	t.Helper()
	s := &table{rows: make(map[string]string)}
	reader = state.NewReader(state.Config{Brokers: l.Brokers(), Topic: marked, Apply: s.apply, Marker: "marker", Pool: l.pool}, testenv.Logger(t))
	return reader, bustest.Run(t, reader.Run)
}

func complete(t *testing.T, reader *state.Reader) {
	t.Helper()
	testenv.Eventually(t, reader.Complete)
	if reader.Lacks() {
		t.Error("a complete state is said to lack something")
	}
}

func lacking(t *testing.T, reader *state.Reader) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if !reader.Lacks() {
			return errors.New("the loss is not noticed")
		}
		return nil
	})
	<-reader.Ready()
	if reader.Complete() == nil {
		t.Error("the state is complete, though the log has lost its end")
	}
}

// A log that lost its end while no process read it counts for nothing,
// at any start, until its owner has published a newer marker; then, it
// does again.
func TestALogThatLostItsEndBeforeAStart(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, losing){
		"shorter": func(_ *testing.T, l losing) { l.Forget(func() {}) },
		"grown": func(t *testing.T, l losing) {
			l.Forget(func() {})
			l.publish(t, "d", "e")
		},
		"recreated": func(t *testing.T, l losing) {
			bustest.ReplaceTopic(t, l.Brokers(), marked, 1, compacted)
			l.publish(t, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLosing(t)
			lose(t, l)
			for range 2 {
				reader, stop := l.start(t)
				lacking(t, reader)
				stop()
			}
			reader, stop := l.start(t)
			lacking(t, reader)
			l.publish(t, "c")
			lacking(t, reader)
			l.publish(t, "marker")
			complete(t, reader)
			stop()
			reader, _ = l.start(t)
			complete(t, reader)
		})
	}
}

// A start goes on without its owner where the log has lost nothing, and
// where all is published again before.
func TestAStartNeedsNoOwner(t *testing.T) {
	t.Parallel()
	l := newLosing(t)
	reader, stop := l.start(t)
	complete(t, reader)
	stop()
	l.Forget(func() {})
	l.publish(t, "c", "marker")
	reader, _ = l.start(t)
	complete(t, reader)
}

// Where the database is away, the log is trusted until it is back.
func TestMarksAreComparedLate(t *testing.T) {
	t.Parallel()
	l := newLosing(t)
	l.Forget(func() {})
	away := func(from, to string) {
		t.Helper()
		if _, err := l.pool.Exec(t.Context(), fmt.Sprintf(`ALTER TABLE %s RENAME TO %s`, from, to)); err != nil {
			t.Fatal(err)
		}
	}
	away("bus_read", "away")
	reader, _ := l.start(t)
	complete(t, reader)
	away("away", "bus_read")
	lacking(t, reader)
	l.publish(t, "marker")
	complete(t, reader)
}

// What is read is kept while the reader runs.
func TestMarksAreKeptAtOnce(t *testing.T) {
	t.Parallel()
	l := newLosing(t)
	reader, _ := l.start(t)
	complete(t, reader)
	l.publish(t, "c")
	bustest.MarksKept(t, l.pool, l.Brokers(), marked)
}

// A snapshot is of no use once the log has lost its end and has grown
// beyond it again: what was written meanwhile would never be read, such
// as a revocation.
func TestSnapshotOfALogThatLostItsEnd(t *testing.T) {
	t.Parallel()
	f := bustest.NewForgetful(t)
	k := &kept{topic: "test.kept.lost", dir: filepath.Join(t.TempDir(), "state")}
	k.brokers = f.Brokers()
	bustest.Ensure(t, k.brokers, k.topic, 1, compacted)
	publish := func(first, n int, value string) {
		t.Helper()
		p := bustest.NewPublisher(t, publisher.Config{Brokers: k.brokers})
		for i := range n {
			testenv.Must(t, p.Publish(k.topic, put(string(rune('a'+first+i)), []byte(value))))
		}
		testenv.Must(t, p.Close())
	}
	publish(0, 5, "kept")
	f.Remember()
	publish(5, 5, "lost")
	if state, _ := k.run(t, nil); len(state) != 10 {
		t.Fatalf("read %v", state)
	}
	f.Forget(func() {})
	publish(0, 2, "revoked") // before the old end
	publish(15, 5, "new")
	want := map[string]string{"a": "revoked", "b": "revoked", "c": "kept", "d": "kept", "e": "kept", "p": "new", "q": "new", "r": "new", "s": "new", "t": "new"}
	if state, _ := k.run(t, nil); !maps.Equal(state, want) {
		t.Errorf("state %v, the log has %v", state, want)
	}
	if state, read := k.run(t, nil); !maps.Equal(state, want) || read > 10 {
		t.Errorf("applied %d records of a sound log, to %v", read, state)
	}
}
