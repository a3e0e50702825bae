package postgres

import (
	"bytes"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/ingest"
)

// ahead has a search read blocks before it asks for them: where the first ones did
// not fill the page, the next ones mostly don't either. They are read in one query, ever more at once,
// and looked through on all processors.
type ahead struct {
	from   *headers                     // of the block that is next; nil: of one that an earlier page has named
	size   int                          // of the text of that block
	opened int                          // blocks of which the texts were read
	found  map[[16]byte][]ingest.Stored // what matches in blocks that were read; bounded by readAtOnce
	rows   map[[16]byte][]bool          // the same by columns, as far as these were read; bounded by siftHeaders
}

// readAtOnce is how many blocks are read at once.
const readAtOnce = 8

// Read returns the entries of a block, at least those that match.
func (s *scan) Read(block ingest.Ref) ([]ingest.Stored, error) {
	if found, is := s.ahead.found[block.ID]; is {
		delete(s.ahead.found, block.ID)
		return found, nil
	}
	due := s.next(block)
	blocks, err := fetchKey{dayOf(block.RetentionDays, block.ReceivedAt), ingest.ReadAll}.read(s, due)
	if err != nil {
		return nil, fmt.Errorf("cannot read block %s: %w", uuidText(block.ID), err)
	}
	s.ahead.opened += len(due)
	switch {
	case len(blocks) == 0: // its day was dropped, or it was merged
		return nil, nil
	case len(due) == 1:
		entries, err := s.unpack(&blocks[0], s.unpacked)
		if entries != nil {
			s.read += s.unpacked.size()
		}
		return entries, err
	}
	return s.lookThrough(blocks, block)
}

// next returns a block, and those behind it that are read with it, within the bytes that are left.
func (s *scan) next(block ingest.Ref) []ingest.Candidate {
	due, a := []ingest.Candidate{{Ref: block}}, &s.ahead
	if a.from == nil || a.opened < siftAfter {
		return due
	}
	behind, left := a.from.fetched, s.most-s.read
	if s.sifts != nil { // the columns of others are read first
		behind = behind[:a.from.sifted]
	}
	most := min(a.opened, readAtOnce-len(a.found)) // some of other partitions may wait
	for i := 0; i < len(behind) && len(due) < most; i++ {
		if _, read := a.found[behind[i].ID]; read || behind[i].Excluded {
			continue
		}
		if left -= behind[i].Bytes + directoryBytes*int(behind[i].Entries.Sum()); left < a.size {
			break
		}
		due = append(due, behind[i])
	}
	return due
}

// lookThrough keeps what matches in blocks, and returns it of the one that is
// asked for. One ahead that can't be read is not kept: the page may end before it.
func (s *scan) lookThrough(blocks []readBlock, asked ingest.Ref) (found []ingest.Stored, err error) {
	all := make([]looked, len(blocks))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i := range blocks {
		workers.Go(func() error {
			all[i] = s.look(&blocks[i])
			return nil
		})
	}
	_ = workers.Wait() // none fails
	if s.ahead.found == nil {
		s.ahead.found = map[[16]byte][]ingest.Stored{}
	}
	for i := range all {
		s.read += all[i].size
		switch id := blocks[i].of.ID; {
		case id == asked.ID:
			found, err = all[i].found, all[i].err
		case all[i].err == nil:
			s.ahead.found[id] = all[i].found
		}
	}
	return found, err
}

// looked is what matches in a block, which has a size.
type looked struct {
	found []ingest.Stored
	size  int
	err   error
}

func (s *scan) look(block *readBlock) (l looked) {
	into := s.store.takeMemory()
	defer s.store.memory.Put(into)
	entries, err := s.unpack(block, into)
	if entries == nil {
		return looked{err: err}
	}
	return looked{found: s.matching(entries, s.ahead.rows[block.of.ID]), size: into.size()}
}

// matching copies the entries that match, of the rows that may; nil: all.
func (s *scan) matching(entries []ingest.Stored, rows []bool) (found []ingest.Stored) {
	for i := range entries {
		if (len(rows) != len(entries) || rows[i]) && s.search.Matches(&entries[i]) {
			entry := entries[i]
			entry.Text = bytes.Clone(entry.Text)
			found = append(found, entry)
		}
	}
	return found
}

// unpack unpacks a block; none where it is gone meanwhile with its object.
func (s *scan) unpack(block *readBlock, into *unpacked) (entries []ingest.Stored, err error) {
	if err = s.store.fetch(s.ctx, &block.packed); err != nil && s.isGone(block.of.Ref) {
		return nil, nil
	}
	if err == nil {
		entries, err = block.entries(s.store.codec, into)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read block %s: %w", uuidText(block.of.ID), err)
	}
	return entries, nil
}
