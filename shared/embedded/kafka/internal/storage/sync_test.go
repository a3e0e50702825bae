package storage

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// Nothing is acknowledged or read before it is synced, also not the
// repetition of what waits; and one sync is enough for all that wait.
func TestOneSyncForAllThatWait(t *testing.T) {
	const waiting = 100
	fsys := faulty(t)
	s := open(t, fsys, "/data")
	p := create(t, s, "topic", nil)
	put(t, p, "first", "kept")
	release, before := fsys.HoldSyncs(), s.Stats().Syncs
	outcomes := make(chan error, waiting+2)
	for sequence := range int32(waiting) {
		wait(t, p, sequence, outcomes)
	}
	wait(t, p, waiting-1, outcomes) // again
	if _, end := p.Bounds(); end != 1 || len(outcomes) > 0 {
		t.Errorf("before a sync the log ends at %d, and %d have answers", end, len(outcomes))
	}
	if got, err := p.Read(nil, 1, 1000, true); len(got) > 0 || err != nil {
		t.Errorf("before a sync %d bytes can be read: %v", len(got), err)
	}
	release()
	for range waiting + 1 {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	if syncs := s.Stats().Syncs - before; syncs > 2 {
		t.Errorf("%d syncs for %d batches, want the one that was held and one for the others", syncs, waiting)
	}
	if _, end := p.Bounds(); end != waiting+1 {
		t.Errorf("the log ends at %d, want %d", end, waiting+1)
	}
}

// wait appends a batch, and reports when it is kept.
func wait(t *testing.T, p *Partition, sequence int32, outcomes chan<- error) {
	t.Helper()
	a, err := p.Append(batch.Sequenced(batch.New(noon.UnixMilli(), []batch.Pair{pair(fmt.Sprint(sequence), "v")}), 7, 0, sequence))
	if err != nil {
		t.Fatal(err)
	}
	go func() { outcomes <- a.Wait() }()
}

// Watchers are told once there is more to read, and when the topic goes.
func TestWatchers(t *testing.T) {
	s := open(t, faulty(t), "/data")
	p := create(t, s, "topic", nil)
	w := NewWatcher()
	p.Watch(w)
	defer p.Unwatch(w)
	put(t, p, "k", "v")
	<-w.C
	if err := s.Topic("topic").Delete(); err != nil {
		t.Fatal(err)
	}
	<-w.C
	if _, err := p.Read(nil, 0, 1000, true); err == nil {
		t.Error("a deleted topic can be read")
	}
}
