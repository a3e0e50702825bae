package storage

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

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
func (p *Partition) open(known bounds) error {
	fsys := p.store.options.FS
	files, unfinished, err := listSegments(fsys, p.dir)
	if err != nil {
		return err
	}
	for _, path := range unfinished {
		if err := fsys.RemoveAll(path); err != nil {
			return err
		}
	}
	if p.mark, err = openMark(fsys, p.dir); err != nil {
		return err
	}
	acked := max(p.mark.at, known.End)
	p.compactions = known.Compactions
	p.made = len(files) > 0
	for i, f := range files {
		if i == 0 {
			p.end = f.base
		}
		last := i == len(files)-1
		if f.base < p.end && !last && files[i+1].base <= p.end { // merged into the one before
			if err := fsys.RemoveAll(f.path); err != nil {
				return err
			}
			continue
		}
		if err := p.openSegment(f, last, acked); err != nil {
			return err
		}
	}
	if p.end < acked {
		return damaged(p.dir, "it ends at offset %d, and what was acknowledged at %d", p.end, acked)
	}
	if len(p.segments) > 0 {
		p.start = max(p.segments[0].base, known.Start)
	}
	p.settle(p.end)
	p.store.skipIDs(p.producers)
	p.producers.forget(millis(p.store.options.Clock()))
	return nil
}

// openSegment reads the next file. Before the offset acked, all of it
// was synced.
func (p *Partition) openSegment(f found, last bool, acked int64) error {
	if f.base != p.end {
		return damaged(f.path, "it begins at offset %d, and the file before ends at %d", f.base, p.end)
	}
	file, err := p.store.options.FS.Open(f.path)
	if err != nil {
		return err
	}
	s := &segment{base: f.base, path: f.path, file: file, newest: -1, written: p.writtenAt(f), stamped: f.Modified}
	p.segments = append(p.segments, s)
	in := newScan(file)
	for {
		b, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return p.syncOpened(s)
		case errors.Is(err, errBroken) && last && p.end >= acked:
			p.store.options.Logger.Warn("embedded broker: cut off a write that was not finished, and so never acknowledged",
				"file", f.path, "from", s.size, "bytes", f.Size-s.size, "offset", p.end, "because", err)
			if err := file.Truncate(s.size); err != nil {
				return err
			}
			return p.syncOpened(s)
		case errors.Is(err, errBroken):
			return damaged(f.path, "batch at byte %d: %v", in.at, err)
		case err != nil:
			return err
		case b.Base() != p.end:
			return damaged(f.path, "batch at byte %d: it has offset %d, want %d", in.at-int64(len(b)), b.Base(), p.end)
		}
		p.opened(s, b)
	}
}

// writtenAt returns when a file was written. If the clock is not the
// machine's, a stamp of the machine's says that it was since the last
// look.
func (p *Partition) writtenAt(f found) time.Time {
	o := p.store.options
	if o.Stamp && !f.Modified.After(o.Machine()) {
		return o.Clock()
	}
	return f.Modified
}

func (p *Partition) opened(s *segment, b batch.Batch) {
	s.note(b, s.written)
	p.producers.note(b, millis(s.written))
	p.end = b.End()
}

// syncOpened syncs what a killed process may have left to the system:
// from now on it can be read.
func (p *Partition) syncOpened(s *segment) error {
	if !p.store.options.Sync {
		return nil
	}
	return p.store.syncSegment(s)
}
