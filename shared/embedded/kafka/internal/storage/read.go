package storage

import (
	"errors"
	"io"
	"os"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// Read returns whole batches from the one with an offset on, up to limit
// bytes; with whole, the first one whatever its size; none at the end of
// the log. They are in memory if its capacity is enough.
func (p *Partition) Read(memory []byte, offset int64, limit int, whole bool) ([]byte, error) {
	for {
		p.mu.RLock()
		v, err := p.view(offset)
		p.mu.RUnlock()
		if err != nil || v.segment == nil {
			return nil, err
		}
		records, err := v.read(memory, offset, limit, whole)
		if errors.Is(err, os.ErrClosed) && !p.isGone() {
			continue // the file was replaced meanwhile
		}
		return records, err
	}
}

// Waiting returns how many bytes Read may have from an offset on, without
// reading them: never too few, and 0 at the end of the log.
func (p *Partition) Waiting(offset int64) (bytes int64, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	v, err := p.view(offset)
	return v.size - v.at, err
}

func (p *Partition) isGone() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.closed()
}

// A view is where in a log to read at one instant.
type view struct {
	segment *segment
	at      int64 // in its file, of a batch not after the offset
	size    int64
	stable  int64
}

// view returns one without segment at the end of the log.
func (j *journal) view(offset int64) (v view, err error) {
	switch {
	case j.gone:
		return v, ErrUnknownTopic
	case offset < j.start || offset > j.end:
		return v, ErrOutOfRange
	case offset >= j.stable:
		return v, nil
	}
	s := j.segments[j.segmentAt(offset)]
	return view{s, s.place(offset), s.size, j.stable}, nil
}

// read is Read in one file.
func (v view) read(memory []byte, offset int64, limit int, whole bool) ([]byte, error) {
	chunk, err := v.load(memory, min(int64(limit)+indexBytes, v.size-v.at))
	if err != nil {
		return nil, err
	}
	skipped, end := 0, 0
	for {
		b, err := v.batchAt(chunk, end)
		switch {
		case errors.Is(err, errPart) && end == skipped && whole && v.at+int64(end) < v.size:
			return v.first(memory, int64(end))
		case errors.Is(err, errPart):
			return chunk[skipped:end], nil
		case err != nil:
			return nil, err
		case b.Base() >= v.stable:
			return chunk[skipped:end], nil
		case b.End() <= offset:
			skipped += len(b)
		case end+len(b)-skipped > limit && (end > skipped || !whole):
			return chunk[skipped:end], nil
		}
		b.Open()
		end += len(b)
	}
}

// load reads so many bytes.
func (v view) load(memory []byte, n int64) ([]byte, error) {
	if int64(cap(memory)) < n {
		memory = make([]byte, n)
	}
	read, err := v.segment.file.ReadAt(memory[:n], v.at)
	if int64(read) < n && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return memory[:read], nil
}

// errPart means that a batch is not whole in what was read.
var errPart = errors.New("a part of a batch")

func (v view) batchAt(chunk []byte, at int) (batch.Batch, error) {
	rest := chunk[at:]
	if len(rest) < batch.HeaderBytes {
		return nil, errPart
	}
	size, sound := batch.Prefix(rest)
	if !sound {
		return nil, damaged(v.segment.path, "batch at byte %d: it has changed since the start", v.at+int64(at))
	}
	if size > len(rest) {
		return nil, errPart
	}
	return batch.Batch(rest[:size]), nil
}

// first reads a batch that is larger than what was asked for, after so
// many bytes.
func (v view) first(memory []byte, skipped int64) ([]byte, error) {
	v.at += skipped
	head, err := v.load(nil, batch.HeaderBytes)
	if err != nil {
		return nil, err
	}
	if _, err := v.batchAt(head, 0); err != nil && !errors.Is(err, errPart) {
		return nil, err
	}
	whole, err := v.load(memory, int64(batch.Batch(head).Size()))
	if err == nil {
		batch.Batch(whole).Open()
	}
	return whole, err
}

// At returns the offset and time of the first record that is not older
// than a time, in milliseconds; -1 for none.
func (p *Partition) At(time int64) (offset, at int64, err error) {
	for {
		p.mu.RLock()
		v := p.views(time)
		p.mu.RUnlock()
		offset, at, err = v.find(time)
		if !errors.Is(err, os.ErrClosed) || p.isGone() {
			return offset, at, err
		}
	}
}

// Newest returns the offset and time of the first of the newest records.
func (p *Partition) Newest() (offset, at int64, err error) {
	p.mu.RLock()
	newest := int64(-1)
	for _, s := range p.segments {
		newest = max(newest, s.newest)
	}
	p.mu.RUnlock()
	if newest < 0 {
		return -1, -1, nil
	}
	return p.At(newest)
}

// views are where in a log to look for a time.
type views struct {
	start, stable int64
	of            []view
}

func (j *journal) views(time int64) views {
	v := views{start: j.start, stable: j.stable}
	for _, s := range j.segments {
		if s.newest >= time {
			v.of = append(v.of, view{segment: s, size: s.size})
		}
	}
	return v
}

func (all views) find(time int64) (offset, at int64, err error) {
	for _, v := range all.of {
		in := newScan(v.segment.file)
		for in.at < v.size {
			b, err := in.next()
			if err != nil {
				return 0, 0, err
			}
			if b.Base() >= all.stable || b.End() <= all.start || b.MaxTime() < time {
				continue
			}
			records, err := b.Records()
			if err != nil {
				return 0, 0, err
			}
			for _, r := range records {
				if r.Offset >= all.start && r.Time >= time {
					return r.Offset, r.Time, nil
				}
			}
		}
	}
	return -1, -1, nil
}
