package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
	"github.com/weirlog/weir/shared/testenv"
)

// noon is the time of all tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func options(fsys disk.FS, dir string) Options {
	return Options{
		FS: fsys, Dir: dir, SegmentBytes: 1 << 20, Sync: true, Clock: func() time.Time { return noon },
		Logger: slog.New(slog.DiscardHandler),
	}
}

func open(t *testing.T, fsys disk.FS, dir string) *Store {
	t.Helper()
	s, err := Open(options(fsys, dir))
	testenv.Must(t, err)
	t.Cleanup(func() { s.stop() })
	return s
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	testenv.Must(t, s.Close())
}

// compactSettings are those of a compacted topic.
var compactSettings = map[string]string{settingCleanup: "compact"}

// create makes a topic of one partition.
func create(t *testing.T, s *Store, name string, settings map[string]string) *Partition {
	t.Helper()
	topic, err := s.Create(name, 1, settings)
	testenv.Must(t, err)
	return topic.Partitions()[0]
}

// partition returns a topic's only one.
func partition(t *testing.T, s *Store, name string) *Partition {
	t.Helper()
	topic := s.Topic(name)
	if topic == nil {
		t.Fatalf("there is no topic %s", name)
	}
	return topic.Partitions()[0]
}

func pair(key, value string) batch.Pair { return batch.Pair{Key: []byte(key), Value: []byte(value)} }

// put appends a batch of one record, and waits until it is kept.
func put(t *testing.T, p *Partition, key, value string) {
	t.Helper()
	testenv.Must(t, tryPut(p, key, value))
}

func tryPut(p *Partition, key, value string) error {
	a, err := p.Append(batch.New(noon.UnixMilli(), []batch.Pair{pair(key, value)}))
	if err != nil {
		return err
	}
	return a.Wait()
}

// content returns all records as offset:key=value.
func content(t *testing.T, p *Partition) string {
	t.Helper()
	var all []string
	for at, end := p.Bounds(); at < end; {
		batches, err := p.Read(nil, at, 1<<20, true)
		if err != nil || len(batches) == 0 {
			t.Fatalf("nothing at %d of %d: %v", at, end, err)
		}
		for len(batches) > 0 {
			b := batch.Batch(batches)
			b, batches = b[:b.Size()], batches[b.Size():]
			at = b.End()
			records, err := b.Records()
			testenv.Must(t, err)
			for _, r := range records {
				value := string(r.Value)
				if r.Value == nil {
					value = "-"
				}
				all = append(all, fmt.Sprintf("%d:%s=%s", r.Offset, r.Key, value))
			}
		}
	}
	return strings.Join(all, " ")
}

func want(t *testing.T, p *Partition, expected string) {
	t.Helper()
	if got := content(t, p); got != expected {
		t.Errorf("the log has %q, want %q", got, expected)
	}
}

// A file within the one before is damage, unless another follows that
// one: then it was merged into it.
func TestOverlappingFile(t *testing.T) {
	fsys := faulty(t)
	s := open(t, fsys, "/data")
	p := create(t, s, "logs", nil)
	for _, key := range []string{"a", "b", "c"} {
		put(t, p, key, "1")
	}
	closeStore(t, s)
	for path, damage := range map[string]bool{segmentPath(p.dir, 3): false, segmentPath(p.dir, 1): true} {
		file, err := fsys.Create(path)
		testenv.Must(t, err)
		testenv.Must(t, errors.Join(file.Sync(), file.Close()))
		s, err := Open(options(fsys, "/data"))
		if errors.Is(err, ErrDamaged) != damage {
			t.Errorf("with %s it opens with %v", path, err)
		}
		if err == nil {
			closeStore(t, s)
		}
		testenv.Must(t, fsys.RemoveAll(path))
	}
}

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
	testenv.Must(t, err)
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
	testenv.Must(t, s.Topic("topic").Delete())
	<-w.C
	if _, err := p.Read(nil, 0, 1000, true); err == nil {
		t.Error("a deleted topic can be read")
	}
}

// What waits from an offset on is never less than what is read, and nothing
// at the end.
func TestWaiting(t *testing.T) {
	p := create(t, open(t, disk.NewMemory(func() time.Time { return noon }), "/data"), "test.waiting", nil)
	const records = 50
	for n := range records {
		put(t, p, "key", strings.Repeat("x", 1+n*97%4000))
	}
	for at := int64(0); at < records; at++ {
		read, err := p.Read(nil, at, 1<<20, true)
		waiting, failed := p.Waiting(at)
		if err != nil || failed != nil || waiting < int64(len(read)) || waiting > int64(len(read))+indexBytes+4096 {
			t.Fatalf("%d bytes wait at %d, and %d are read: %v, %v", waiting, at, len(read), failed, err)
		}
	}
	if waiting, err := p.Waiting(records); waiting != 0 || err != nil {
		t.Errorf("%d bytes wait at the end, %v", waiting, err)
	}
	if _, err := p.Waiting(records + 1); !errors.Is(err, ErrOutOfRange) {
		t.Errorf("beyond the end: %v", err)
	}
}
