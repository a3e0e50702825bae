package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
	"github.com/weirlog/weir/shared/testenv"
)

// kinds are the kinds of topics.
var kinds = map[string]map[string]string{"plain": nil, "compacted": compactSettings}

// lastBatches are what the last batch of a log may be.
var lastBatches = map[string][]batch.Pair{
	"small":        {pair("k", "v")},
	"a tombstone":  {{Key: []byte("k")}},
	"of several":   {pair("a", "1"), pair("b", strings.Repeat("x", 700)), pair("c", "")},
	"of zeros":     {pair("k", strings.Repeat("\x00", 300))},
	"ending so":    {pair("k", "value"+strings.Repeat("\x00", 40))},
	"over sectors": {pair("k", strings.Repeat("abc", 500))},
	"over pages":   {pair("k", strings.Repeat("abc", 4000))},
}

// strides is how many rounds try every byte of a batch.
const strides = 11

// What is left of a log whose last batch the disk has only in part, from
// any byte of it on: nothing, zeros, or what was there before. If the
// batch was not acknowledged, it is cut off and what was before stays;
// if it was, the log is damaged.
func TestTornLastBatch(t *testing.T) {
	for kind, settings := range kinds {
		for last, pairs := range lastBatches {
			t.Run(kind+" "+last, func(t *testing.T) {
				t.Parallel()
				whole, from := torn(t, settings, pairs)
				log := newTornLog(t, settings)
				for round := range testenv.Rounds(t, 1, strides) {
					for at := from + round; at < len(whole); at += strides {
						log.tornAt(t, whole, at, int64(len(pairs)))
					}
				}
			})
		}
	}
}

// A byte that has changed before the last batch is damage.
func TestChangedByteBefore(t *testing.T) {
	for kind, settings := range kinds {
		t.Run(kind, func(t *testing.T) {
			whole, from := torn(t, settings, lastBatches["small"])
			log := newTornLog(t, settings)
			for at := range from {
				if _, err := log.reopened(t, changed(whole, at), 1); !errors.Is(err, ErrDamaged) {
					t.Errorf("changed at byte %d of %d: %v, want %v", at, len(whole), err, ErrDamaged)
				}
			}
		})
	}
}

// torn returns a log's file, and where its last batch begins.
func torn(t *testing.T, settings map[string]string, pairs []batch.Pair) (whole []byte, from int) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, disk.OS{}, dir)
	p := create(t, s, "torn", settings)
	put(t, p, "first", "kept")
	from = int(p.segments[0].size)
	a, err := p.Append(batch.New(noon.UnixMilli(), pairs))
	if err == nil {
		err = a.Wait()
	}
	testenv.Must(t, err)
	path := p.segments[0].path
	closeStore(t, s)
	whole, err = os.ReadFile(path)
	testenv.Must(t, err)
	return whole, from
}

// tails are what a disk may have from a byte on.
var tails = map[string]func(whole []byte, at int) []byte{
	"nothing":          func(whole []byte, at int) []byte { return whole[:at] },
	"zeros":            func(whole []byte, at int) []byte { return zeroed(whole, at, len(whole)) },
	"a sector of them": func(whole []byte, at int) []byte { return zeroed(whole, at, min(at+512, len(whole))) },
	"more zeros":       func(whole []byte, at int) []byte { return append(zeroed(whole, at, len(whole)), make([]byte, 1024)...) },
	"garbage":          func(whole []byte, at int) []byte { return append(whole[:at:at], garbage[:len(whole)-at]...) },
	"a changed byte":   changed,
}

// garbage is the same in each run.
var garbage = func() []byte {
	text := make([]byte, 1<<16)
	_, _ = rand.NewChaCha8([32]byte{}).Read(text)
	return text
}()

func zeroed(whole []byte, from, to int) []byte {
	text := slices.Clone(whole)
	clear(text[from:to])
	return text
}

func changed(whole []byte, at int) []byte {
	text := slices.Clone(whole)
	text[at] ^= 0x55
	return text
}

// A tornLog is a store with a topic of one partition.
type tornLog struct {
	fsys *disk.Memory
	dir  string // of the partition
}

func newTornLog(t *testing.T, settings map[string]string) tornLog {
	t.Helper()
	fsys := disk.NewMemory(options(nil, "").Clock)
	p := create(t, open(t, fsys, "/data"), "torn", settings)
	return tornLog{fsys, p.dir}
}

func (l tornLog) tornAt(t *testing.T, whole []byte, at int, records int64) {
	t.Helper()
	for name, tail := range tails {
		file := tail(whole, at)
		want := int64(1)
		if bytes.HasPrefix(file, whole) { // the batch ends in what the tail has
			want += records
		}
		acked := int64(at % 2) // the mark may be lost, too
		if left, err := l.reopened(t, file, acked); err != nil || left != want {
			t.Errorf("%s from byte %d of %d, %d acknowledged: %d records and %v, want %d", name, at, len(whole), acked, left, err, want)
		}
		if _, err := l.reopened(t, file, 1+records); (want == 1) != errors.Is(err, ErrDamaged) {
			t.Errorf("%s from byte %d of %d, all acknowledged: %v", name, at, len(whole), err)
		}
	}
}

// reopened returns how many records a log with such a file has of which
// so many are known to have been acknowledged.
func (l tornLog) reopened(t *testing.T, file []byte, acked int64) (records int64, err error) {
	t.Helper()
	testenv.Must(t, write(l.fsys, segmentPath(l.dir, 0), file))
	_ = l.fsys.RemoveAll(l.dir + "/" + markFile)
	(&mark{}).set(l.fsys, l.dir, acked)
	s, err := Open(options(l.fsys, "/data"))
	if err != nil {
		return 0, err
	}
	defer s.stop()
	p := partition(t, s, "torn")
	if !strings.HasPrefix(content(t, p), "0:first=kept") {
		t.Errorf("the first record is lost: %s", content(t, p))
	}
	_, end := p.Bounds()
	return end, tryPut(p, "next", "kept")
}

func write(fsys disk.FS, path string, content []byte) error {
	file, err := fsys.Create(path)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(content, 0)
	return errors.Join(err, file.Close())
}

// A file that is missing between others, or at the end after an orderly
// stop, is damage.
func TestMissingFiles(t *testing.T) {
	for kind, settings := range kinds {
		for missing := range 3 {
			t.Run(fmt.Sprint(kind, missing), func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, disk.OS{}, dir)
				p := create(t, s, "torn", map[string]string{settingCleanup: settings[settingCleanup], settingSegment: "100"})
				if settings == nil {
					p = create(t, s, "torn2", map[string]string{settingSegment: "100"})
				}
				for i := range 4 {
					put(t, p, fmt.Sprint(i), strings.Repeat("x", 60))
				}
				closeStore(t, s)
				testenv.Must(t, os.Remove(filepath.Join(p.dir, fmt.Sprintf("%d.dat", missing+1))))
				if _, err := Open(options(disk.OS{}, dir)); !errors.Is(err, ErrDamaged) {
					t.Errorf("without file %d: %v", missing+1, err)
				}
				cuts, err := Repair(options(disk.OS{}, dir))
				if err != nil || len(cuts) != 1 || cuts[0].From != int64(missing+1) || cuts[0].To != 4 {
					t.Errorf("repaired: %+v, %v", cuts, err)
				}
				s = open(t, disk.OS{}, dir)
				if _, end := partition(t, s, p.topic.Name).Bounds(); end != int64(missing+1) {
					t.Errorf("it ends at %d, want %d", end, missing+1)
				}
			})
		}
	}
}
