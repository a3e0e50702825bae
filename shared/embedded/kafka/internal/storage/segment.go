package storage

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
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

// endBefore returns where the batches before an offset end.
func (s *segment) endBefore(offset int64) (int64, error) {
	if len(s.index) == 0 || offset <= s.base {
		return 0, nil
	}
	in := newScan(s.file)
	in.seek(s.place(offset - 1))
	for {
		b, err := in.next()
		if err != nil {
			return 0, err
		}
		if b.End() >= offset {
			return in.at, nil
		}
	}
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

// errBroken means that a batch is not what was written.
var errBroken = errors.New("broken batch")

var errShort = fmt.Errorf("%w: the file ends within it", errBroken)

// A scan reads a file's batches in order, from byte at on.
type scan struct {
	file disk.File
	in   *bufio.Reader
	at   int64 // where the next batch begins
	buf  []byte
}

// readAhead is how much a scan reads at a time.
const readAhead = 256 << 10

func newScan(file disk.File) *scan {
	s := &scan{file: file}
	s.seek(0)
	return s
}

func (s *scan) seek(at int64) {
	s.at = at
	in := io.NewSectionReader(s.file, at, 1<<62)
	if s.in == nil {
		s.in = bufio.NewReaderSize(in, readAhead)
		return
	}
	s.in.Reset(in)
}

// next returns the next batch, valid until the following call; io.EOF
// at the end of the file, errBroken where it is not whole. Other errors
// are the disk's.
func (s *scan) next() (batch.Batch, error) {
	prefix, err := s.in.Peek(batch.PrefixBytes)
	if errors.Is(err, io.EOF) && len(prefix) > 0 {
		return nil, errShort
	}
	if err != nil {
		return nil, err
	}
	size, sound := batch.Prefix(prefix)
	if !sound {
		return nil, fmt.Errorf("%w: its head differs from what was written", errBroken)
	}
	if cap(s.buf) < size {
		s.buf = make([]byte, size+size/4)
	}
	b := batch.Batch(s.buf[:size])
	if _, err := io.ReadFull(s.in, b); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errShort
		}
		return nil, err
	}
	if !b.Sound() {
		return nil, fmt.Errorf("%w: its checksum differs", errBroken)
	}
	s.at += int64(len(b))
	return b, nil
}

// markFile says up to which offset a partition's log was synced.
const markFile = "synced"

// A mark is the offset before which all records may have been
// acknowledged: what is not whole there is damage, what is not whole
// after it was never finished. It is written before each
// acknowledgement and not synced, so that it costs no time: after a kill
// it is the last one, after a power cut it may be one of a moment
// before.
type mark struct {
	file disk.File // nil: not there yet
	at   int64
}

const (
	markBytes    = 12 // the offset, and its checksum
	markOffsetIs = 8
)

var markTable = crc32.MakeTable(crc32.Castagnoli)

// openMark reads a directory's mark; 0 without one that is whole.
func openMark(fsys disk.FS, dir string) (mark, error) {
	file, err := fsys.Open(filepath.Join(dir, markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, err
	}
	text := make([]byte, markBytes)
	n, _ := file.ReadAt(text, 0)
	if n < markBytes || crc32.Checksum(text[:markOffsetIs], markTable) != binary.BigEndian.Uint32(text[markOffsetIs:]) {
		return mark{file: file}, nil
	}
	return mark{file, int64(binary.BigEndian.Uint64(text))}, nil //nolint:gosec // as set writes it
}

// set moves the mark. One that can't be written stays where it is, which
// is sound.
func (m *mark) set(fsys disk.FS, dir string, at int64) {
	if m.at == at {
		return
	}
	if m.file == nil {
		file, err := fsys.Create(filepath.Join(dir, markFile))
		if err != nil {
			return
		}
		m.file = file
	}
	text := binary.BigEndian.AppendUint64(make([]byte, 0, markBytes), uint64(at)) //nolint:gosec // offsets are positive
	if _, err := m.file.WriteAt(binary.BigEndian.AppendUint32(text, crc32.Checksum(text, markTable)), 0); err == nil {
		m.at = at
	}
}

func (m *mark) close() error {
	if m.file == nil {
		return nil
	}
	return m.file.Close()
}
