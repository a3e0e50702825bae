package state_test

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
)

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
			if err := p.Publish(k.topic, put(string(rune('a'+first+i)), []byte(value))); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
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
