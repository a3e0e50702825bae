package clickhouse

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirlog/weir/ingest"
)

// A Row is what a row has beside its entry.
type Row struct {
	Organization, Project string
	Retention             int
	Day                   time.Time // of receipt
	Block                 [16]byte
	Move                  int64
}

// columns are those of an insert, in the order of appendRow.
const columns = `organization, project, retention, day, seconds, nanos, batch, number, received, level, environment, text, words, block, move, deadline`

// appendRow appends a row in the format RowBinary: numbers are little-endian, a
// text has its length before it, as a varint.
func appendRow(dst []byte, row *Row, entry *ingest.Stored, words []byte, deadline time.Time) []byte {
	le := binary.LittleEndian
	dst = appendText(appendText(dst, row.Organization), row.Project)
	dst = le.AppendUint16(dst, uint16(row.Retention))                                          //nolint:gosec // bounded by the contract
	dst = le.AppendUint16(dst, uint16(row.Day.Unix()/int64(24*time.Hour/time.Second)))         //nolint:gosec // a day up to 2149
	dst = le.AppendUint32(le.AppendUint64(dst, uint64(entry.Time.Seconds)), entry.Time.Nanos)  //nolint:gosec // 64 bits either way
	dst = le.AppendUint32(append(dst, entry.Batch[:]...), uint32(entry.Index))                 //nolint:gosec // bounded by the size of a request
	dst = append(le.AppendUint64(dst, uint64(entry.ReceivedAt.UnixNano())), byte(entry.Level)) //nolint:gosec // 64 bits either way
	dst = appendText(appendText(dst, entry.Environment), entry.Text)
	dst = append(appendText(dst, words), row.Block[:]...)
	dst = le.AppendUint64(dst, uint64(row.Move))               //nolint:gosec // counted from 1
	return le.AppendUint32(dst, uint32(deadline.UTC().Unix())) //nolint:gosec // up to 2106
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// entryColumns are those that a search or count reads, in the order of entry.
const entryColumns = `project, seconds, nanos, batch, number, received, level, environment, text`

// A rowReader reads rows of the format RowBinary one after the other. After a
// failure it returns zeros.
type rowReader struct {
	from  *bufio.Reader
	bytes int64 // read so far
	err   error
	free  []byte // memory for texts
	last  [2]string
}

func newRowReader(from io.Reader) *rowReader {
	return &rowReader{from: bufio.NewReaderSize(from, 1<<16)}
}

// more reports whether there is another row.
func (r *rowReader) more() bool {
	if r.err != nil {
		return false
	}
	_, err := r.from.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return err == nil
}

// maxTextBytes bounds a text that an answer claims to have.
const maxTextBytes = 64 << 20

// text returns a text in memory of its own.
func (r *rowReader) text() []byte {
	const together = 64 << 10
	size := r.size()
	if size > together/8 {
		return r.fixed(make([]byte, size))
	}
	if size > len(r.free) {
		r.free = make([]byte, together)
	}
	text := r.free[:size:size]
	r.free = r.free[size:]
	return r.fixed(text)
}

// name returns a text that is mostly that of the row before, whose memory it then
// shares; column tells those of a row apart.
func (r *rowReader) name(column int) string {
	const longest = 256
	size := r.size()
	if size > longest {
		return string(r.fixed(make([]byte, size)))
	}
	text, err := r.from.Peek(size)
	if err != nil {
		r.err = errors.Join(r.err, err)
		return ""
	}
	if string(text) != r.last[column] {
		r.last[column] = string(text)
	}
	_, _ = r.from.Discard(size) // it was there
	r.bytes += int64(size)
	return r.last[column]
}

func (r *rowReader) size() int {
	if r.err != nil {
		return 0
	}
	size, err := binary.ReadUvarint(r.from)
	if err != nil || size > maxTextBytes {
		r.err = errors.Join(err, fmt.Errorf("a text of %d bytes", size))
		return 0
	}
	return int(size)
}

// fixed fills a slice.
func (r *rowReader) fixed(into []byte) []byte {
	if r.err == nil {
		_, r.err = io.ReadFull(r.from, into)
		r.bytes += int64(len(into))
	}
	return into
}

func (r *rowReader) uint(size int) uint64 {
	var buffer [8]byte
	r.fixed(buffer[:size])
	return binary.LittleEndian.Uint64(buffer[:])
}

func (r *rowReader) int64() int64 { return int64(r.uint(8)) } //nolint:gosec // 64 bits either way

func (r *rowReader) instant() ingest.Instant {
	return ingest.Instant{Seconds: r.int64(), Nanos: uint32(r.uint(4))} //nolint:gosec // four bytes
}

// entry reads the entryColumns.
func (r *rowReader) entry() (project string, entry ingest.Stored) {
	project = r.name(0)
	entry.Time = r.instant()
	r.fixed(entry.Batch[:])
	entry.Index = int(r.uint(4)) //nolint:gosec // four bytes
	entry.ReceivedAt = time.Unix(0, r.int64()).UTC()
	entry.Level = ingest.Severity(r.uint(1)) //nolint:gosec // one byte
	entry.Environment, entry.Text = r.name(1), r.text()
	return project, entry
}
