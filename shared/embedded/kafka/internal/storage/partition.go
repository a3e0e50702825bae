package storage

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// A Partition is one log. A record is readable, and its producer gets
// an answer, once it is synced; one sync covers all that was appended
// before it began. Safe for concurrent use.
type Partition struct {
	topic *Topic
	name  string // in checkpoints

	rewriting sync.Mutex // held while segments are replaced or removed

	mu sync.RWMutex
	journal
	compactions compactions
	syncing     bool
}

// Bounds returns the offset of the first record and of the one after the
// last.
func (p *Partition) Bounds() (start, end int64) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.start, p.stable
}

// Bytes returns the size of its files.
func (p *Partition) Bytes() int64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.bytes()
}

// Append appends a checked batch, and changes it. It returns once the
// log has the batch; Wait of the result, once it is synced.
func (p *Partition) Append(b batch.Batch) (Appended, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.writable(); err != nil {
		return Appended{}, err
	}
	if err := p.topic.takes(b); err != nil {
		return Appended{}, err
	}
	again, err := p.producers.admit(b, p.end)
	if err != nil {
		return Appended{}, err
	}
	if again != nil {
		return Appended{p, again.base, again.end}, nil
	}
	if err := p.append(b, p.topic.segmentBytes()); err != nil {
		return Appended{}, p.refuse(p.dir, err)
	}
	p.accept()
	base := p.end
	p.note(b, p.store.options.Clock())
	p.sync()
	return Appended{p, base, p.end}, nil
}

// openLogs opens all partitions, several at a time.
func (s *Store) openLogs(known checkpoint) error {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var all error
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, t := range s.Topics() {
		for _, p := range t.Partitions() {
			turns <- struct{}{}
			wait.Go(func() {
				err := p.open(known.Partitions[p.name])
				mu.Lock()
				defer mu.Unlock()
				if all == nil { // one line is enough
					all = err
				}
				<-turns
			})
		}
	}
	wait.Wait()
	return all
}

// open reads a partition's files.
func (p *Partition) open(known bounds) (err error) {
	if p.mark, err = openMark(p.store.options.FS, p.dir); err != nil {
		return err
	}
	p.compactions = known.Compactions
	if err := p.log.open(max(p.mark.at, known.End)); err != nil {
		return err
	}
	if len(p.segments) > 0 {
		p.start = max(p.segments[0].base, known.Start)
	}
	p.settle(p.end)
	p.store.ids.skip(p.producers)
	p.producers.forget(millis(p.store.options.Clock()))
	return nil
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
	first := firstKept(p.segments, now, p.topic.limit(settingRetention), p.topic.limit(settingRetentionBytes))
	switch {
	case first == 0:
		return nil
	case first == len(p.segments):
		return p.drop(p.stable)
	}
	return p.drop(p.segments[first].base)
}

// firstKept returns the index of the oldest segment to keep; the number
// of segments if the last one has expired, too.
func firstKept(segments []*segment, now time.Time, age, bytes int64) int {
	first, kept := len(segments), int64(0)
	for i := len(segments) - 1; i >= 0; i-- {
		s, last := segments[i], i == len(segments)-1
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
	return offset, p.drop(offset)
}
