package storage

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// A Partition is one log. A record is readable, and its producer gets
// an answer, once it is synced; one sync covers all that was appended
// before it began. Safe for concurrent use.
type Partition struct {
	store *Store
	topic *Topic
	name  string // in checkpoints
	dir   string

	rewriting sync.Mutex // held while segments are replaced or removed

	mu          sync.RWMutex
	made        bool       // the directory is there
	segments    []*segment // by offset; records are appended to the last
	mark        mark       // of stable
	start       int64      // of the first record that may be read
	end         int64      // after the last record appended
	stable      int64      // after the last record synced: readers get no others
	producers   producers
	compactions []compaction // oldest first

	torn    bool  // bytes after the last segment's size are to be cut off
	failed  error // why nothing can be appended until the next start; nil: it can
	refused error // why the last append failed; nil: it did not
	gone    bool  // deleted
	syncing bool

	waiters  []waiter
	watchers map[*Watcher]struct{} // bounded by the connections
}

// A compaction is what is known of an earlier one: at which time all
// records before an offset were compacted.
type compaction struct {
	Before int64 `json:"before"`
	At     int64 `json:"at"` // milliseconds
}

// Bounds returns the offset of the first record and of the one after the
// last.
func (p *Partition) Bounds() (start, end int64) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.start, p.stable
}

// Bytes returns the size of its files.
func (p *Partition) Bytes() (n int64) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, s := range p.segments {
		n += s.size
	}
	return n
}

// Append appends a checked batch, and changes it. It returns once the
// log has the batch; Wait of the result, once it is synced.
func (p *Partition) Append(b batch.Batch) (Appended, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.writable(); err != nil {
		return Appended{}, err
	}
	if err := p.takes(b); err != nil {
		return Appended{}, err
	}
	again, err := p.producers.admit(b, p.end)
	if err != nil {
		return Appended{}, err
	}
	if again != nil {
		return Appended{p, again.base, again.end}, nil
	}
	if err := p.write(b); err != nil {
		return Appended{}, p.refuse(err)
	}
	p.accept()
	base := p.end
	now := p.store.options.Clock()
	p.segments[len(p.segments)-1].note(b, now)
	p.producers.note(b, millis(now))
	p.end = b.End()
	p.sync()
	return Appended{p, base, p.end}, nil
}

// takes returns an error for a batch that compaction could not read.
func (p *Partition) takes(b batch.Batch) error {
	if !p.topic.Compacted() {
		return nil
	}
	records, err := b.Records()
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Key == nil {
			return fmt.Errorf("%w: a record without key for the compacted topic %q", batch.ErrInvalid, p.topic.Name)
		}
	}
	return nil
}

func (p *Partition) writable() error {
	if p.gone {
		return ErrUnknownTopic
	}
	return p.failed
}

// write puts a batch at the end of the last file; if it fails, the log
// is as before.
func (p *Partition) write(b batch.Batch) error {
	if err := p.mend(); err != nil {
		return err
	}
	if err := p.ready(int64(len(b))); err != nil {
		return err
	}
	b.Seal(p.end)
	last := p.segments[len(p.segments)-1]
	n, err := last.file.WriteAt(b, last.size)
	if err == nil && n < len(b) {
		err = fmt.Errorf("only %d of %d bytes were written", n, len(b))
	}
	if err != nil {
		p.torn = true
		return errors.Join(err, p.mend())
	}
	return nil
}

// mend cuts off what a failed append may have left.
func (p *Partition) mend() error {
	if !p.torn {
		return nil
	}
	last := p.segments[len(p.segments)-1]
	if err := last.file.Truncate(last.size); err != nil {
		return fmt.Errorf("cannot cut off an unfinished batch: %w", err)
	}
	p.torn = false
	return nil
}

// ready makes a last segment that has room for so many bytes.
func (p *Partition) ready(bytes int64) error {
	if len(p.segments) == 0 {
		return p.begin(p.end)
	}
	last := p.segments[len(p.segments)-1]
	if last.size == 0 || last.size+bytes <= p.topic.segmentBytes() {
		return nil
	}
	return p.roll()
}

// roll begins another file. The one before is synced first, so that
// after a power cut no file but the last can be unfinished.
func (p *Partition) roll() error {
	if err := p.mend(); err != nil {
		return err
	}
	last := p.segments[len(p.segments)-1]
	if p.store.options.Sync {
		if err := p.store.syncSegment(last); err != nil {
			p.fail(notWritten(last.path, err))
			return p.failed
		}
		p.settle(p.end)
	}
	return p.begin(p.end)
}

// begin makes an empty file for what comes at an offset.
func (p *Partition) begin(base int64) error {
	fsys, path := p.store.options.FS, segmentPath(p.dir, base)
	if !p.made {
		if err := p.store.makePartitionDir(p.dir); err != nil {
			return err
		}
		p.made = true
	}
	file, err := fsys.Create(path)
	if err != nil {
		return err
	}
	if err := p.store.syncDir(p.dir); err != nil {
		return errors.Join(err, file.Close(), fsys.RemoveAll(path))
	}
	p.segments = append(p.segments, &segment{base: base, path: path, file: file, newest: -1, written: p.store.options.Clock()})
	return nil
}

// refuse notes that an append failed.
func (p *Partition) refuse(cause error) error {
	if p.failed != nil { // it failed for good, and said so
		return p.failed
	}
	if p.refused == nil {
		p.store.refusing.Add(1)
		p.store.options.Logger.Error("embedded broker: cannot append to the log; the partition refuses records until it can",
			"topic", p.topic.Name, "directory", p.dir, "error", cause)
	}
	p.refused = notWritten(p.dir, cause)
	return p.refused
}

// accept notes that an append succeeded.
func (p *Partition) accept() {
	if p.refused != nil {
		p.refused = nil
		p.store.refusing.Add(-1)
		p.store.options.Logger.Info("embedded broker: the log takes records again", "topic", p.topic.Name, "directory", p.dir)
	}
}

// segmentAt returns the index of the segment with an offset.
func (p *Partition) segmentAt(offset int64) int {
	return sort.Search(len(p.segments), func(i int) bool { return p.segments[i].base > offset }) - 1
}

// stop closes the files, and returns what could not be saved.
func (p *Partition) stop() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.segments {
		if last := i == len(p.segments)-1; last && p.failed == nil {
			err = errors.Join(err, p.mend(), s.sync())
		} else if !p.store.options.Sync { // those were not synced before
			err = errors.Join(err, s.sync())
		}
		err = errors.Join(err, p.stamp(s), s.file.Close())
	}
	if err == nil && p.failed == nil {
		p.settle(p.end)
	}
	p.release(os.ErrClosed)
	if p.failed == nil {
		p.failed = notWritten(p.dir, os.ErrClosed)
	}
	return errors.Join(err, p.mark.close())
}

// stamp gives a file the time at which it was written by a clock that is
// not the machine's.
func (p *Partition) stamp(s *segment) error {
	if !p.store.options.Stamp || s.written.Equal(s.stamped) {
		return nil
	}
	s.stamped = s.written
	return p.store.options.FS.Stamp(s.path, s.written)
}

// millis returns a time as records have it.
func millis(t time.Time) int64 { return t.UnixMilli() }

// Retain deletes what exceeds the topics' retention.ms and
// retention.bytes, forgets silent producers, and looks where each log
// ends. Like Apache Kafka it deletes whole files; the last only if it
// has expired, and then an empty one keeps the log's end.
func (s *Store) Retain(now time.Time) (err error) {
	for _, t := range s.Topics() {
		for _, p := range t.Partitions() {
			err = errors.Join(err, p.retain(now))
		}
	}
	return errors.Join(err, s.writeCheckpoint())
}

func (p *Partition) retain(now time.Time) error {
	p.rewriting.Lock()
	defer p.rewriting.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.producers.forget(millis(now))
	for _, s := range p.segments {
		if err := p.stamp(s); err != nil {
			return notWritten(s.path, err)
		}
	}
	if p.topic.Compacted() {
		return nil
	}
	first := p.firstKept(now)
	switch {
	case first == 0:
		return nil
	case first == len(p.segments):
		return p.removeBefore(p.stable)
	}
	return p.removeBefore(p.segments[first].base)
}

// firstKept returns the index of the oldest segment to keep; the number
// of segments if the last one has expired, too.
func (p *Partition) firstKept(now time.Time) int {
	age, bytes := p.topic.limit(settingRetention), p.topic.limit(settingRetentionBytes)
	first, kept := len(p.segments), int64(0)
	for i := len(p.segments) - 1; i >= 0; i-- {
		s, last := p.segments[i], i == len(p.segments)-1
		kept += s.size
		expired := s.size > 0 && age >= 0 && now.Sub(s.written).Milliseconds() >= age
		if expired || !last && bytes >= 0 && kept > bytes {
			return first
		}
		first = i
	}
	return first
}

// DeleteBefore deletes the records before an offset, -1 for all, and
// returns where the log begins now. That is on disk when it returns.
func (p *Partition) DeleteBefore(offset int64) (start int64, err error) {
	start, err = p.deleteBefore(offset)
	if err == nil {
		err = p.store.writeCheckpoint()
	}
	return start, err
}

func (p *Partition) deleteBefore(offset int64) (int64, error) {
	p.rewriting.Lock()
	defer p.rewriting.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if offset == -1 {
		offset = p.stable
	}
	switch {
	case p.gone:
		return 0, ErrUnknownTopic
	case offset < 0 || offset > p.stable:
		return 0, ErrOutOfRange
	case offset <= p.start:
		return p.start, nil
	}
	return offset, p.removeBefore(offset)
}

// removeBefore moves the start of the log, and removes the files before it.
func (p *Partition) removeBefore(offset int64) error {
	last := p.segments[len(p.segments)-1]
	if offset == p.end && last.size > 0 {
		if err := p.writable(); err != nil {
			return err
		}
		if err := p.roll(); err != nil {
			return notWritten(p.dir, err)
		}
	}
	p.start = max(p.start, offset)
	for len(p.segments) > 1 && p.segments[1].base <= offset {
		if err := p.remove(p.segments[0]); err != nil {
			return err
		}
		p.segments = p.segments[1:]
	}
	return nil
}

// remove removes a file, to last: one that came back could be behind a gap.
func (p *Partition) remove(s *segment) error {
	if err := errors.Join(p.store.options.FS.RemoveAll(s.path), p.store.syncDir(p.dir)); err != nil {
		return notWritten(s.path, err)
	}
	return s.file.Close()
}
