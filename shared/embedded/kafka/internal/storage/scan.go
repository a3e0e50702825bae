package storage

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

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
