package storage

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// A log is the files of a partition, and what they tell. It has no lock: its
// partition does.
type log struct {
	store *Store
	dir   string
	made  bool // the directory is there

	segments  []*segment // by offset; records are appended to the last
	start     int64      // of the first record that may be read
	end       int64      // after the last record appended
	torn      bool       // bytes after the last segment's size are to be cut off
	producers producers
}

func (l *log) last() *segment { return l.segments[len(l.segments)-1] }

func (l *log) bytes() (n int64) {
	for _, s := range l.segments {
		n += s.size
	}
	return n
}

// segmentAt returns the index of the segment with an offset.
func (l *log) segmentAt(offset int64) int {
	return sort.Search(len(l.segments), func(i int) bool { return l.segments[i].base > offset }) - 1
}

// write puts a batch at the end of the last file; if it fails, the log
// is as before.
func (l *log) write(b batch.Batch) error {
	b.Seal(l.end)
	last := l.last()
	n, err := last.file.WriteAt(b, last.size)
	if err == nil && n < len(b) {
		err = fmt.Errorf("only %d of %d bytes were written", n, len(b))
	}
	if err != nil {
		l.torn = true
		return errors.Join(err, l.mend())
	}
	return nil
}

// mend cuts off what a failed append may have left.
func (l *log) mend() error {
	if !l.torn {
		return nil
	}
	last := l.last()
	if err := last.file.Truncate(last.size); err != nil {
		return fmt.Errorf("cannot cut off an unfinished batch: %w", err)
	}
	l.torn = false
	return nil
}

// begin makes an empty file for what comes at an offset.
func (l *log) begin(base int64) error {
	fsys, path := l.store.options.FS, segmentPath(l.dir, base)
	if !l.made {
		if err := l.store.options.makePartitionDir(l.dir); err != nil {
			return err
		}
		l.made = true
	}
	file, err := fsys.Create(path)
	if err != nil {
		return err
	}
	if err := l.store.options.syncDir(l.dir); err != nil {
		return errors.Join(err, file.Close(), fsys.RemoveAll(path))
	}
	l.segments = append(l.segments, &segment{base: base, path: path, file: file, newest: -1, written: l.store.options.Clock()})
	return nil
}

// note notes a batch that the last file has since a time.
func (l *log) note(b batch.Batch, at time.Time) {
	l.last().note(b, at)
	l.producers.note(b, millis(at))
	l.end = b.End()
}

// removeBefore moves the start of the log, and removes the files before it.
func (l *log) removeBefore(offset int64) error {
	l.start = max(l.start, offset)
	for len(l.segments) > 1 && l.segments[1].base <= offset {
		if err := l.remove(l.segments[0]); err != nil {
			return err
		}
		l.segments = l.segments[1:]
	}
	return nil
}

// remove removes a file, to last: one that came back could be behind a gap.
func (l *log) remove(s *segment) error {
	if err := errors.Join(l.store.options.FS.RemoveAll(s.path), l.store.options.syncDir(l.dir)); err != nil {
		return notWritten(s.path, err)
	}
	return s.file.Close()
}

// stamp gives a file the time at which it was written by a clock that is
// not the machine's.
func (l *log) stamp(s *segment) error {
	if !l.store.options.Stamp || s.written.Equal(s.stamped) {
		return nil
	}
	s.stamped = s.written
	return l.store.options.FS.Stamp(s.path, s.written)
}

// cut cuts off the records from an offset in the last file on.
func (l *log) cut(offset int64) error {
	at, err := l.last().endBefore(offset)
	if err != nil {
		return err
	}
	return l.last().file.Truncate(at)
}

// open reads all files. Before the offset acked, all was synced.
func (l *log) open(acked int64) error {
	fsys := l.store.options.FS
	files, unfinished, err := listSegments(fsys, l.dir)
	if err != nil {
		return err
	}
	for _, path := range unfinished {
		if err := fsys.RemoveAll(path); err != nil {
			return err
		}
	}
	l.made = len(files) > 0
	for i, f := range files {
		if i == 0 {
			l.end = f.base
		}
		last := i == len(files)-1
		if f.base < l.end && !last && files[i+1].base <= l.end { // merged into the one before
			if err := fsys.RemoveAll(f.path); err != nil {
				return err
			}
			continue
		}
		if err := l.openSegment(f, last, acked); err != nil {
			return err
		}
	}
	if l.end < acked {
		return damaged(l.dir, "it ends at offset %d, and what was acknowledged at %d", l.end, acked)
	}
	return nil
}

// openSegment reads the next file, and syncs what a killed process may have
// left to the system: from now on it can be read.
func (l *log) openSegment(f found, last bool, acked int64) error {
	if f.base != l.end {
		return damaged(f.path, "it begins at offset %d, and the file before ends at %d", f.base, l.end)
	}
	file, err := l.store.options.FS.Open(f.path)
	if err != nil {
		return err
	}
	s := &segment{base: f.base, path: f.path, file: file, newest: -1, written: l.store.options.writtenAt(f), stamped: f.Modified}
	l.segments = append(l.segments, s)
	if err := l.scan(s, f, last, acked); err != nil || !l.store.options.Sync {
		return err
	}
	return l.store.syncSegment(s)
}

// scan notes the batches of a file, and cuts off what was not finished.
func (l *log) scan(s *segment, f found, last bool, acked int64) error {
	in := newScan(s.file)
	for {
		b, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errBroken) && last && l.end >= acked:
			l.store.options.Logger.Warn("embedded broker: cut off a write that was not finished, and so never acknowledged",
				"file", f.path, "from", s.size, "bytes", f.Size-s.size, "offset", l.end, "because", err)
			return s.file.Truncate(s.size)
		case errors.Is(err, errBroken):
			return damaged(f.path, "batch at byte %d: %v", in.at, err)
		case err != nil:
			return err
		case b.Base() != l.end:
			return damaged(f.path, "batch at byte %d: it has offset %d, want %d", in.at-int64(len(b)), b.Base(), l.end)
		}
		l.note(b, s.written)
	}
}

// writtenAt returns when a file was written. If the clock is not the
// machine's, a stamp of the machine's says that it was since the last
// look.
func (o Options) writtenAt(f found) time.Time {
	if o.Stamp && !f.Modified.After(o.Machine()) {
		return o.Clock()
	}
	return f.Modified
}

// swap puts a merged file in place of those that it was made of; then
// swapped may note it.
func (l *log) swap(m *merge, swapped func()) error {
	fsys := l.store.options.FS
	if err := fsys.Rename(m.path, m.merged.path); err != nil {
		return errors.Join(notWritten(m.merged.path, err), m.merged.file.Close(), fsys.RemoveAll(m.path))
	}
	old := m.segments
	l.segments = slices.Concat(l.segments[:m.first], []*segment{m.merged}, l.segments[m.first+len(old):])
	swapped()
	if err := l.store.options.syncDir(l.dir); err != nil { // or those removed could be missed
		err = notWritten(l.dir, err)
		for _, s := range old {
			err = errors.Join(err, s.file.Close())
		}
		return err
	}
	err := old[0].file.Close()
	for _, s := range old[1:] {
		err = errors.Join(err, l.remove(s))
	}
	return err
}
