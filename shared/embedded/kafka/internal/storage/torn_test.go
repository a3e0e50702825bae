package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// kinds are the kinds of topics.
var kinds = map[string]map[string]string{"plain": nil, "compacted": compactSettings}

// A log whose last batch is cut off at any byte loses that batch; one
// in which any byte of it has changed is damaged; one that has only
// zeros from some byte on is one or the other. What was before stays.
func TestTornLastBatch(t *testing.T) {
	for kind, settings := range kinds {
		for last, pairs := range lastBatches {
			t.Run(kind+" "+last, func(t *testing.T) {
				t.Parallel()
				whole, from := torn(t, settings, pairs)
				for at := from; at < len(whole); at++ {
					tornAt(t, settings, whole, at)
				}
			})
		}
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
	if err != nil {
		t.Fatal(err)
	}
	path := p.segments[0].path
	closeStore(t, s)
	whole, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole, from
}

func tornAt(t *testing.T, settings map[string]string, whole []byte, at int) {
	t.Helper()
	changed := append([]byte(nil), whole...)
	changed[at] ^= 0x55
	zeroed := append([]byte(nil), whole...)
	clear(zeroed[at:])
	if _, err := reopened(t, settings, whole[:at]); err != nil {
		t.Errorf("cut at byte %d of %d: %v", at, len(whole), err)
	}
	if _, err := reopened(t, settings, changed); !errors.Is(err, ErrDamaged) {
		t.Errorf("changed at byte %d of %d: %v, want %v", at, len(whole), err, ErrDamaged)
	}
	left, err := reopened(t, settings, zeroed)
	sameAsBefore := string(zeroed) == string(whole)
	if err != nil && !errors.Is(err, ErrDamaged) || err == nil && (left == 1) == sameAsBefore {
		t.Errorf("zeros from byte %d of %d: %d records and %v", at, len(whole), left, err)
	}
	// What a disk leaves of a write: whole sectors, and zeros after them.
	if at%sectorBytes == 0 && len(whole)-at >= leastZeros && !sameAsBefore && err != nil {
		t.Errorf("zeros from the sector at %d of %d: %v, want that it is cut", at, len(whole), err)
	}
}

// reopened returns how many records a log with such a file has.
func reopened(t *testing.T, settings map[string]string, file []byte) (records int64, err error) {
	t.Helper()
	fsys := disk.NewMemory(options(nil, "").Clock)
	s := open(t, fsys, "/data")
	p := create(t, s, "torn", settings)
	path := segmentPath(p.dir, 0)
	if err := write(fsys, path, file); err != nil {
		t.Fatal(err)
	}
	s, err = Open(options(fsys, "/data"))
	if err != nil {
		return 0, err
	}
	defer s.stop()
	p = partition(t, s, "torn")
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
				if err := os.Remove(filepath.Join(p.dir, fmt.Sprintf("%d.dat", missing+1))); err != nil {
					t.Fatal(err)
				}
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
