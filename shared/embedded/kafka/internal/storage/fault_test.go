package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk/disktest"
	"github.com/weirlog/weir/shared/testenv"
)

func faulty(t *testing.T) *disktest.FS {
	t.Helper()
	return disktest.New(disk.NewMemory(options(nil, "").Clock))
}

// half fails a write after half of it.
func half(err error) disktest.Fault {
	return func(op disktest.Op) (int, error) {
		if op.Name == "write" {
			return op.Size / 2, err
		}
		return op.Size, nil
	}
}

// An append that fails is not acknowledged, and leaves no trace: the log
// goes on once the disk takes it, and a start finds it sound.
func TestRefusedAppends(t *testing.T) {
	for name, fault := range map[string]disktest.Fault{
		"full":                  disktest.Only("write", syscall.ENOSPC),
		"full in the middle":    half(syscall.ENOSPC),
		"broken":                half(syscall.EIO),
		"cannot cut off":        both(half(syscall.EIO), disktest.Only("truncate", syscall.EIO)),
		"no further file":       disktest.Only("create", fs.ErrPermission),
		"directory not to sync": disktest.Only("syncdir", syscall.EIO),
	} {
		t.Run(name, func(t *testing.T) {
			fsys := faulty(t)
			s := open(t, fsys, "/data")
			p := create(t, s, "topic", map[string]string{settingSegment: "70"}) // a file for each
			put(t, p, "a", "1")
			fsys.Fail(fault)
			for range 3 {
				if err := tryPut(p, "lost", "x"); !errors.Is(err, ErrNotWritten) {
					t.Errorf("%v, want %v", err, ErrNotWritten)
				}
			}
			if refusing := s.Stats().Refusing; refusing != 1 {
				t.Errorf("%d partitions refuse", refusing)
			}
			fsys.Fail(nil)
			put(t, p, "b", "2")
			want(t, p, "0:a=1 1:b=2")
			if refusing := s.Stats().Refusing; refusing != 0 {
				t.Errorf("%d partitions refuse", refusing)
			}
			want(t, partition(t, open(t, fsys, "/data"), "topic"), "0:a=1 1:b=2") // as after a kill
		})
	}
}

func both(a, b disktest.Fault) disktest.Fault {
	return func(op disktest.Op) (int, error) {
		if n, err := a(op); err != nil {
			return n, err
		}
		return b(op)
	}
}

// After a failed sync the partition refuses records until a start, what
// was not synced is neither acknowledged nor read, also after it.
func TestFailedSync(t *testing.T) {
	fsys := faulty(t)
	s := open(t, fsys, "/data")
	p, other := create(t, s, "topic", nil), create(t, s, "other", nil)
	put(t, p, "a", "1")
	put(t, other, "a", "1")
	fsys.Fail(func(op disktest.Op) (int, error) {
		if op.Name == "sync" && strings.Contains(op.Path, "topic-0") {
			return 0, syscall.EIO
		}
		return op.Size, nil
	})
	if err := tryPut(p, "b", "lost"); !errors.Is(err, ErrNotWritten) {
		t.Errorf("%v, want %v", err, ErrNotWritten)
	}
	fsys.Fail(nil)
	if err := tryPut(p, "c", "lost"); !errors.Is(err, ErrNotWritten) {
		t.Errorf("it goes on: %v", err)
	}
	want(t, p, "0:a=1")
	put(t, other, "b", "2")
	if failed := s.Stats().Failed; failed != 1 {
		t.Errorf("%d partitions have failed", failed)
	}
	closeStore(t, s)
	p = partition(t, open(t, fsys, "/data"), "topic")
	put(t, p, "d", "4")
	want(t, p, "0:a=1 1:d=4")
}

// sequenced is a batch of one record with a producer's sequence number.
func sequenced(t *testing.T, producer int64, sequence int32, value string) batch.Batch {
	t.Helper()
	return batch.Sequenced(batch.New(noon.UnixMilli(), []batch.Pair{pair(fmt.Sprint(sequence), value)}), producer, 0, sequence)
}

// The repetition of an append that failed is appended, and that of one
// that succeeded is not, also after a kill.
func TestRepetitions(t *testing.T) {
	fsys := faulty(t)
	s := open(t, fsys, "/data")
	p := create(t, s, "topic", compactSettings)
	send := func(sequence int32) (int64, error) {
		a, err := p.Append(sequenced(t, 7, sequence, "v"))
		if err == nil {
			err = a.Wait()
		}
		return a.Base, err
	}
	fsys.Fail(half(syscall.ENOSPC))
	if _, err := send(0); !errors.Is(err, ErrNotWritten) {
		t.Errorf("on a full disk: %v", err)
	}
	if _, err := send(1); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("the one after what failed: %v", err)
	}
	fsys.Fail(nil)
	for sequence := range int32(7) {
		if at, err := send(sequence); at != int64(sequence) || err != nil {
			t.Errorf("sequence %d is at %d, %v", sequence, at, err)
		}
	}
	for _, restart := range []func(){
		func() {},
		func() { s = open(t, fsys, "/data"); p = partition(t, s, "topic") },
	} {
		restart()
		for sequence := int32(2); sequence < 7; sequence++ {
			if at, err := send(sequence); at != int64(sequence) || err != nil {
				t.Errorf("repeated, sequence %d is at %d, %v", sequence, at, err)
			}
		}
		if _, err := send(1); !errors.Is(err, ErrOutOfOrder) {
			t.Errorf("an old repetition: %v", err)
		}
		if _, err := send(9); !errors.Is(err, ErrOutOfOrder) {
			t.Errorf("after a gap: %v", err)
		}
	}
	testenv.Must(t, s.Compact(noon))
	p = partition(t, open(t, fsys, "/data"), "topic")
	if at, err := send(6); at != 6 || err != nil {
		t.Errorf("repeated after compaction, it is at %d, %v", at, err)
	}
	if at, err := send(7); at != 7 || err != nil {
		t.Errorf("the next after compaction is at %d, %v", at, err)
	}
}

// A kill at any step of a life of the store loses nothing that was
// acknowledged, and a start finds no damage.
func TestKilledAtEachStep(t *testing.T) {
	for steps := 0; ; steps++ {
		fsys := faulty(t)
		s := open(t, fsys, "/data")
		before := fsys.Ops()
		fsys.CrashAfter(steps)
		acked := live(s)
		done := fsys.Ops()-before <= steps
		fsys.Fail(nil)
		again, err := Open(options(fsys, "/data"))
		if err != nil {
			t.Fatalf("killed at step %d: %v", steps, err)
		}
		isThere(t, again, acked, steps)
		again.stop()
		if done {
			return
		}
	}
}

// isThere checks that a store has what was acknowledged.
func isThere(t *testing.T, s *Store, acked []string, steps int) {
	t.Helper()
	for _, key := range acked {
		topic, record, _ := strings.Cut(key, "/")
		if s.Topic(topic) == nil {
			t.Fatalf("stopped at step %d: topic %s is lost", steps, topic)
		}
		if got := content(t, partition(t, s, topic)); record != "" && !strings.Contains(got, ":"+record) {
			t.Errorf("stopped at step %d: %s lacks %s: %s", steps, topic, record, got)
		}
	}
}

// live uses a store until it is killed, and returns what must be there
// afterwards.
func live(s *Store) (acked []string) {
	small := map[string]string{settingSegment: "150", settingCleanup: "compact"}
	state, err := s.Create("state", 1, small)
	if err != nil {
		return acked
	}
	acked = append(acked, "state/")
	if gone, err := s.Create("gone", 1, nil); err == nil {
		_ = tryPut(gone.Partitions()[0], "x", "y")
		_ = gone.Delete()
	}
	logs, err := s.Create("logs", 1, map[string]string{settingSegment: "150", settingRetention: "0"})
	if err != nil {
		return acked
	}
	packed, err := s.Create("packed", 1, map[string]string{settingSegment: "720"}) // ten batches
	if err != nil {
		return acked
	}
	p := state.Partitions()[0]
	last := map[string]string{}
	for round := range 3 {
		for i := range 5 {
			key := fmt.Sprint("k", i%3)
			value := fmt.Sprint(key, "=", round, i)
			_, v, _ := strings.Cut(value, "=")
			if err := tryPut(p, key, v); err != nil {
				return append(acked, values(last)...)
			}
			last[key] = "state/" + value
			key = fmt.Sprint(round, "-", i)
			if err := tryPut(packed.Partitions()[0], key, "v"); err != nil {
				return append(acked, values(last)...)
			}
			acked = append(acked, "packed/"+key+"=v")
			_ = tryPut(logs.Partitions()[0], "expires", "soon")
		}
		_ = s.Compact(noon)
		_ = Pack(s)
		_ = s.Retain(noon)
	}
	return append(acked, values(last)...)
}

func values(m map[string]string) (all []string) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// A power cut at any step loses nothing that was acknowledged, whatever
// the disk has of what was not synced, and a start finds no damage.
func TestPowerCutAtEachStep(t *testing.T) {
	for steps := 0; ; steps++ {
		power := disktest.NewVolatile("/data")
		fsys := disktest.New(power)
		s := open(t, fsys, "/data")
		before := fsys.Ops()
		fsys.CrashAfter(steps)
		acked := live(s)
		done := fsys.Ops()-before <= steps
		for _, left := range []disktest.Remainder{disktest.Nothing, disktest.Zeros, disktest.Holes, disktest.Garbage, disktest.All} {
			again, err := Open(options(power.PowerCut("/data", left), "/data"))
			if err != nil {
				t.Fatalf("cut at step %d, left is %d: %v", steps, left, err)
			}
			isThere(t, again, acked, steps)
			again.stop()
		}
		if done {
			return
		}
	}
}

// A sync that fails while another file is begun: the system tells one of
// the two that sync the file, and that is enough to refuse both batches.
func TestFailedSyncBesideAnother(t *testing.T) {
	fsys := &oneSyncFails{FS: faulty(t)}
	s := open(t, fsys, "/data")
	p := create(t, s, "topic", map[string]string{settingSegment: "150"}) // two batches
	put(t, p, "a", "1")
	begun, rolled := make(chan struct{}), make(chan struct{})
	fsys.fail(func() error {
		close(begun)
		for p.mu.TryLock() { // until the other has come to its sync
			p.mu.Unlock()
			select {
			case <-rolled:
				return syscall.EIO
			default:
				runtime.Gosched()
			}
		}
		return syscall.EIO
	})
	first, err := p.Append(batch.New(noon.UnixMilli(), []batch.Pair{pair("b", "2")}))
	testenv.Must(t, err)
	<-begun
	second, err := p.Append(batch.New(noon.UnixMilli(), []batch.Pair{pair("c", "3")}))
	close(rolled)
	if err == nil {
		err = second.Wait()
	}
	if !errors.Is(first.Wait(), ErrNotWritten) || !errors.Is(err, ErrNotWritten) {
		t.Errorf("the batches are answered %v and %v, want both refused", first.Wait(), err)
	}
	want(t, p, "0:a=1")
	want(t, partition(t, open(t, fsys, "/data"), "topic"), "0:a=1")
}

// oneSyncFails tells of a failed sync once, as Linux does.
type oneSyncFails struct {
	disk.FS

	mu  sync.Mutex
	why func() error // of the next sync; nil: it succeeds
}

func (f *oneSyncFails) fail(why func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = why
}

func (f *oneSyncFails) Create(name string) (disk.File, error) {
	made, err := f.FS.Create(name)
	return syncsOf{made, f}, err
}

type syncsOf struct {
	disk.File

	fsys *oneSyncFails
}

func (f syncsOf) Sync() error {
	f.fsys.mu.Lock()
	why := f.fsys.why
	f.fsys.why = nil
	f.fsys.mu.Unlock()
	if why != nil {
		return why()
	}
	return f.File.Sync()
}
