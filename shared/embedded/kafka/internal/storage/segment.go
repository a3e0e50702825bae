package storage

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// indexBytes is how much of a file is between two entries of its index.
const indexBytes = 32 << 10

// A segment is one file of a partition's log.
type segment struct {
	base int64 // offset of its first record
	path string
	file disk.File

	size    int64 // bytes of whole batches
	batches int64
	index   []entry
	newest  int64     // time of its newest record in milliseconds; -1: none
	written time.Time // last
	stamped time.Time // the file's time, as far as it was set by us

	syncing sync.Mutex
	failed  error // of a sync
}

// sync returns once all that was written is on the disk. A failure lasts:
// the system tells one of those that sync a file at the same time, and
// then takes what it dropped for written.
func (s *segment) sync() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if s.failed == nil {
		s.failed = s.file.Sync()
	}
	return s.failed
}

// An entry of an index is a batch's place.
type entry struct{ offset, at int64 }

const segmentSuffix = ".dat"

func segmentPath(dir string, base int64) string {
	return filepath.Join(dir, strconv.FormatInt(base, 10)+segmentSuffix)
}

// note adds a batch at the end.
func (s *segment) note(b batch.Batch, now time.Time) {
	if len(s.index) == 0 || s.size-s.index[len(s.index)-1].at >= indexBytes {
		s.index = append(s.index, entry{b.Base(), s.size})
	}
	s.size, s.batches = s.size+int64(b.Size()), s.batches+1
	s.newest = max(s.newest, b.MaxTime())
	s.written = now
}

// place returns where a batch begins that is not after an offset.
func (s *segment) place(offset int64) int64 {
	i := sort.Search(len(s.index), func(i int) bool { return s.index[i].offset > offset })
	return s.index[max(i-1, 0)].at
}

// found is a file of a partition's directory.
type found struct {
	base int64
	path string
	disk.Entry
}

// listSegments lists a partition's files by offset, none before the
// first write, and those that a crash left unfinished.
func listSegments(fsys disk.FS, dir string) (segments []found, unfinished []string, err error) {
	entries, err := disk.ListOrNone(fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name)
		name, isSegment := strings.CutSuffix(e.Name, segmentSuffix)
		base, err := strconv.ParseInt(name, 10, 64)
		switch {
		case e.Name == markFile:
		case strings.HasSuffix(e.Name, ".new"):
			unfinished = append(unfinished, path)
		case isSegment && err == nil && base >= 0:
			segments = append(segments, found{base, path, e})
		default:
			return nil, nil, damaged(path, "it is no file of a log")
		}
	}
	slices.SortFunc(segments, func(a, b found) int { return cmp.Compare(a.base, b.base) })
	return segments, unfinished, nil
}

func (s *segment) String() string { return fmt.Sprintf("%s of %d bytes", s.path, s.size) }
