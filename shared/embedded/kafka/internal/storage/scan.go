package storage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// sectorBytes is the smallest piece that a disk writes whole: what never
// reached it reads as zeros from the start of one, or from the end of
// what was there before.
const sectorBytes = 512

// leastZeros is how many zeros at the end of a file count as never
// written. A batch may well end in a few.
const leastZeros = 16

// errUnfinished means that a file ends within a batch: its write was
// cut off, so it was never acknowledged.
var errUnfinished = errors.New("its last batch is unfinished")

// errBroken means that a batch is not what was written.
var errBroken = errors.New("broken batch")

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
// at the end of the file, errUnfinished or errBroken where it is not
// whole. Other errors are the disk's.
func (s *scan) next() (batch.Batch, error) {
	b, err := s.read()
	switch {
	case err == nil:
		s.at += int64(len(b))
		return b, nil
	case errors.Is(err, errBroken):
		zeros, checkErr := s.endsInZeros()
		if checkErr != nil {
			return nil, checkErr
		}
		if zeros {
			return nil, errUnfinished
		}
	}
	return nil, err
}

func (s *scan) read() (batch.Batch, error) {
	prefix, err := s.in.Peek(batch.PrefixBytes)
	if errors.Is(err, io.EOF) && len(prefix) > 0 {
		return nil, errUnfinished
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
			err = errUnfinished
		}
		return nil, err
	}
	if !b.Sound() {
		return nil, fmt.Errorf("%w: its checksum differs", errBroken)
	}
	return b, nil
}

// endsInZeros reports whether the broken batch at s.at is one that the
// disk has only in part: from its start, or from a sector on, the file
// is zeros to its end.
func (s *scan) endsInZeros() (bool, error) {
	in := io.NewSectionReader(s.file, s.at, 1<<62)
	last, end := s.at, s.at // after the last byte that is not zero, after all
	buf := make([]byte, readAhead)
	for {
		n, err := in.Read(buf)
		if kept := bytes.TrimRight(buf[:n], "\x00"); len(kept) > 0 {
			last = end + int64(len(kept))
		}
		end += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, err
		}
	}
	from := last
	if last > s.at {
		from = (last + sectorBytes - 1) / sectorBytes * sectorBytes
	}
	return end-from >= leastZeros && s.withinFirst(last), nil
}

// withinFirst reports whether byte last is within the batch at s.at,
// as far as its size is known.
func (s *scan) withinFirst(last int64) bool {
	prefix := make([]byte, batch.PrefixBytes)
	if n, _ := s.file.ReadAt(prefix, s.at); n < len(prefix) {
		return true
	}
	size, sound := batch.Prefix(prefix)
	if !sound { // torn within its first bytes
		return last <= s.at+batch.PrefixBytes
	}
	return last <= s.at+int64(size)
}
