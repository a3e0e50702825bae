package storage

import (
	"errors"
	"time"
)

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
