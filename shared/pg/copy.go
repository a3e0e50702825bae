package pg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Copy copies n rows into columns of a table: fill appends the values of
// row i, in the order and types of the columns. PostgreSQL stores some
// rows while another goroutine fills the next ones, and has ended when
// Copy returns; a panic of fill becomes one of Copy. pgx's own CopyFrom
// boxes each value and looks its type up, at several times the cost.
func Copy(ctx context.Context, tx pgx.Tx, table string, columns []string, n int, fill func(i int, row *CopyRow)) error {
	names := make([]string, len(columns))
	for i, column := range columns {
		names[i] = pgx.Identifier{column}.Sanitize()
	}
	rows := &copyRows{columns: uint16(len(columns)), n: n, fill: fill} //nolint:gosec // a table has few
	rows.coming.encoded = append(rows.coming.encoded, copyHeader...)
	statement := fmt.Sprintf(`COPY %s (%s) FROM STDIN BINARY`, pgx.Identifier{table}.Sanitize(), strings.Join(names, ", "))
	_, err := tx.Conn().PgConn().CopyFrom(ctx, rows, statement)
	rows.stop()
	if err != nil {
		return fmt.Errorf("cannot copy %d rows into %q: %w", n, table, err)
	}
	return nil
}

// copyRows encodes rows as they are read.
type copyRows struct {
	columns uint16
	n, next int
	fill    func(i int, row *CopyRow)
	coming  CopyRow // encoded and not read yet
	ended   bool

	reading  sync.Mutex
	stopped  bool
	panicked string // the panic and its stack; empty: none
}

// Read implements io.Reader.
func (r *copyRows) Read(p []byte) (n int, err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	if r.stopped {
		return 0, io.EOF
	}
	defer r.catch(&err)
	return r.encode(p)
}

// catch turns a panic into the end of the copy: in pgx's reading
// goroutine it would end the process.
func (r *copyRows) catch(err *error) {
	if v := recover(); v != nil {
		r.panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
		*err = errors.New("cannot encode a row")
	}
}

// stop waits until no read runs, and panics if one has: pgx leaves its
// goroutine reading when it loses the connection.
func (r *copyRows) stop() {
	r.reading.Lock()
	defer r.reading.Unlock()
	r.stopped = true
	if r.panicked != "" {
		panic(r.panicked)
	}
}

func (r *copyRows) encode(p []byte) (n int, err error) {
	for ; r.next < r.n && len(r.coming.encoded) < len(p); r.next++ {
		r.coming.encoded = binary.BigEndian.AppendUint16(r.coming.encoded, r.columns)
		r.fill(r.next, &r.coming)
	}
	if r.next == r.n && !r.ended {
		r.coming.encoded, r.ended = append(r.coming.encoded, copyEnd...), true
	}
	if len(r.coming.encoded) == 0 {
		return 0, io.EOF
	}
	n = copy(p, r.coming.encoded)
	r.coming.encoded = append(r.coming.encoded[:0], r.coming.encoded[n:]...)
	return n, nil
}

// copyHeader is the signature of the binary format, without
// flags and extensions.
const copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// copyEnd stands in place of a row's number of columns.
const copyEnd = "\xff\xff"

// A CopyRow takes the values of rows in the binary format of their types.
type CopyRow struct{ encoded []byte }

// Text appends a text.
func (r *CopyRow) Text(text string) {
	r.length(len(text))
	r.encoded = append(r.encoded, text...)
}

// Int16 appends a smallint.
func (r *CopyRow) Int16(n int16) {
	r.length(2)
	r.encoded = binary.BigEndian.AppendUint16(r.encoded, uint16(n)) //nolint:gosec // the bits are what counts
}

// Int32 appends an int.
func (r *CopyRow) Int32(n int32) {
	r.length(4)
	r.encoded = binary.BigEndian.AppendUint32(r.encoded, uint32(n)) //nolint:gosec // the bits are what counts
}

// Int64 appends a bigint.
func (r *CopyRow) Int64(n int64) {
	r.length(8)
	r.encoded = binary.BigEndian.AppendUint64(r.encoded, uint64(n)) //nolint:gosec // the bits are what counts
}

// UUID appends a uuid.
func (r *CopyRow) UUID(id [16]byte) {
	r.length(len(id))
	r.encoded = append(r.encoded, id[:]...)
}

// epoch is PostgreSQL's zero time.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Time appends a timestamptz, in microseconds.
func (r *CopyRow) Time(at time.Time) { r.Int64(at.UnixMicro() - epoch.UnixMicro()) }

// Date appends the UTC day of a time as a date.
func (r *CopyRow) Date(at time.Time) {
	const day = 24 * 60 * 60
	r.Int32(int32((at.UTC().Truncate(24*time.Hour).Unix() - epoch.Unix()) / day)) //nolint:gosec // as many days as a date can have
}

// Null appends NULL.
func (r *CopyRow) Null() { r.length(-1) }

func (r *CopyRow) length(n int) {
	r.encoded = binary.BigEndian.AppendUint32(r.encoded, uint32(n)) //nolint:gosec // below the size of a record
}
