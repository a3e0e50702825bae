package bus

import (
	"cmp"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// Header is one header of a record. Keys may repeat; their order is kept.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record of a topic. Key and Value may be nil; a nil
// Value is a tombstone. Records share bytes, which must not be changed.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
	Key       []byte
	Value     []byte
	Headers   []Header
	Time      time.Time // set by the producer, in milliseconds
}

// IsFiller reports whether the record stands at the offset of one that
// the log has lost: see package logend. It has neither key, value nor
// headers.
func (r Record) IsFiller() bool { return r.Key == nil && r.Value == nil && len(r.Headers) == 0 }

// Header returns the value of the first header of that name, or "".
func (r Record) Header(name string) string {
	for i := range r.Headers {
		if r.Headers[i].Key == name {
			return string(r.Headers[i].Value)
		}
	}
	return ""
}

// Lookup returns Header for a reader of many headers: it copies all
// values at once.
func (r Record) Lookup() func(name string) string {
	headers, values := r.Headers, joined(r.Headers)
	return func(name string) string {
		from := 0
		for i := range headers {
			to := from + len(headers[i].Value)
			if headers[i].Key == name {
				return values[from:to]
			}
			from = to
		}
		return ""
	}
}

func joined(headers []Header) string {
	size := 0
	for i := range headers {
		size += len(headers[i].Value)
	}
	var values strings.Builder
	values.Grow(size)
	for i := range headers {
		values.Write(headers[i].Value)
	}
	return values.String()
}

// Size is the record's weight in limits of memory: its bytes and
// a flat overhead.
func (r Record) Size() int {
	n := len(r.Key) + len(r.Value) + 128
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 40
	}
	return n
}

// Position is the place of a record in its topic. Offset is -1 for a
// written record whose offset the broker no longer knew.
type Position struct {
	Partition int
	Offset    int64
}

// Detached returns the record with all bytes copied into one
// allocation; nil stays nil. The headers are changed in place.
func (r Record) Detached() Record {
	size := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		size += len(r.Headers[i].Value)
	}
	room := make([]byte, 0, size)
	r.Key, room = moveInto(room, r.Key)
	r.Value, room = moveInto(room, r.Value)
	for i := range r.Headers {
		r.Headers[i].Value, room = moveInto(room, r.Headers[i].Value)
	}
	return r
}

// moveInto copies b into room.
func moveInto(room, b []byte) (moved, rest []byte) {
	if b == nil {
		return nil, room
	}
	room = append(room, b...)
	return room[len(room)-len(b) : len(room) : len(room)], room
}

// A Mark identifies a record: a log that was shortened and has grown
// since has another one at its offset.
type Mark struct {
	Offset int64
	Time   time.Time
	Sum    uint32 // CRC-32C of the time, the key, the headers, and the size of the value
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mark returns the record's mark. It reads no value, which may be
// large: among the headers is the record's id.
func (r Record) Mark() Mark {
	var fixed [16]byte
	binary.BigEndian.PutUint64(fixed[:], uint64(r.Time.UnixMilli())) //nolint:gosec // any number
	binary.BigEndian.PutUint64(fixed[8:], uint64(len(r.Value)))      //nolint:gosec // a size
	sum := crc32.Update(crc32.Checksum(fixed[:], castagnoli), castagnoli, r.Key)
	for i := range r.Headers {
		sum = crc32.Update(sum, castagnoli, r.Headers[i].Value)
	}
	return Mark{Offset: r.Offset, Time: r.Time, Sum: sum}
}

const (
	// KeyMetadata is the entry of a message's metadata that becomes the
	// record's key, not a header.
	KeyMetadata = "weir_key"

	// HeaderID carries a message's UUID, as the CloudEvents Kafka binding names it.
	HeaderID = "ce_id"
)

// NewMessage maps a record to a Watermill message, the inverse of Publisher.
// The last of repeated headers wins. Bytes are shared with the record.
func NewMessage(r Record) *message.Message {
	m := message.NewMessage(r.Header(HeaderID), r.Value)
	for _, h := range r.Headers {
		m.Metadata[h.Key] = string(h.Value)
	}
	if r.Key != nil {
		m.Metadata[KeyMetadata] = string(r.Key)
	}
	return m
}

var (
	// ErrClosed answers every call on a closed part of the bus.
	// Nothing was sent.
	ErrClosed = errors.New("bus is closed")

	// ErrUnknownOutcome means that a message may be written: the answer
	// was lost, or the caller did not wait for it. After every other
	// error of a Publisher it is not written.
	ErrUnknownOutcome = errors.New("outcome unknown: written or not written")

	// ErrEncryption means that a process and a broker do not agree on
	// TLS: a certificate is wrong, or the broker's port has no TLS.
	ErrEncryption = errors.New("no TLS with the broker")

	// ErrTooLarge refuses a message that no batch can hold. Nothing was sent.
	ErrTooLarge = errors.New("message too large")

	// ErrUnknownTopic means that the brokers have no such topic. Nothing was sent.
	ErrUnknownTopic = errors.New("unknown topic")

	// ErrNotDelivered means that a message was not written within
	// its delivery timeout.
	ErrNotDelivered = errors.New("not delivered in time")

	// ErrFenced means that another consumer now owns the positions: the
	// transaction is rolled back.
	ErrFenced = errors.New("position is owned by another consumer")

	// ErrNeverRead means that the log lost its beginning before the
	// consumer read it.
	ErrNeverRead = errors.New("records are gone that were never read")
	// ErrOutsideLog means that a position is before the start or after
	// the end of its partition's log.
	ErrOutsideLog = errors.New("position outside the log")

	// ErrEndLost means that a position is after the end of its
	// partition's log. It comes with ErrOutsideLog.
	ErrEndLost = errors.New("the log has lost its end")

	// ErrLogDiffers means that a log has another record than the one that
	// a position has passed: it was shortened, and has grown since.
	ErrLogDiffers = errors.New("the log has another record than was applied")

	// ErrTopicReplaced means that a position or a snapshot is of a
	// deleted topic whose name another one has now.
	ErrTopicReplaced = errors.New("the topic was deleted and re-created")
)

// IsLostEnd reports whether an error is about a log that lost records
// which were applied. Their offsets would come twice.
func IsLostEnd(err error) bool {
	return errors.Is(err, ErrEndLost) || errors.Is(err, ErrTopicReplaced) || errors.Is(err, ErrLogDiffers)
}

// PermanentError marks what no retry can fix.
type PermanentError struct {
	Err       error
	Record    bool // partition and offset name the record at fault
	Partition int
	Offset    int64
}

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent marks err as the fault of a record that can never be
// applied. After it a consumer finds the record by bisection and parks
// it. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err}
}

// PermanentRecord is Permanent for a known record: it saves the bisection.
func PermanentRecord(r Record, err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err, Record: true, Partition: r.Partition, Offset: r.Offset}
}

// IsPermanent reports whether Permanent or PermanentRecord marked err
// or an error that it wraps.
func IsPermanent(err error) bool {
	var marked *PermanentError
	return errors.As(err, &marked)
}

// PanicError is a handler's panic as an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v\n%s", e.Value, e.Stack) }

// Retention is how long untouched records are kept. Zero means the defaults.
type Retention struct {
	ParkedDays int `help:"For how many days a record that can't be applied is kept after it last failed, so that it can be applied later." env:"WEIR_PARKED_DAYS" default:"90"`
}

const (
	parkedDays    = 90 // the log has lost the record long before
	minParkedDays = 8  // the ledger accounts for every offset of the days whose ranges it keeps
)

// Validate returns what is wrong.
func (r Retention) Validate() error {
	if r.ParkedDays != 0 && r.ParkedDays < minParkedDays {
		return fmt.Errorf("WEIR_PARKED_DAYS is %d: parked records are kept for at least %d days", r.ParkedDays, minParkedDays)
	}
	return nil
}

// Tables returns the tables with old rows to delete, for a prune.Pruner.
func (r Retention) Tables(clock func() time.Time) []prune.Table {
	days := cmp.Or(r.ParkedDays, parkedDays)
	return []prune.Table{prune.Rows{
		Table: "bus_parked", Bound: fmt.Sprintf("parked records for %d days after they last failed", days), Age: "failed_at",
		Before: prune.Ago(time.Duration(days)*24*time.Hour, clock),
	}}
}

// Fixed returns the bounds of the other tables. A stopped lane stays:
// without its row, later records would be applied before its own.
func Fixed() []prune.Bound {
	return []prune.Bound{
		{Table: "bus_positions", Keeps: "a row for each partition of a topic that is consumed", By: "the topics' partitions"},
		{Table: "bus_deferred", Keeps: "10,000 lanes of each member, stopped ones until they are resumed", By: "shared/bus/consumer"},
		{Table: "bus_relays", Keeps: "a row for each outbox", By: "shared/bus/relay"},
		{Table: "bus_read", Keeps: "a row for each partition of a topic that is kept in memory", By: "shared/bus/state"},
	}
}

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations creates the bus's tables. Every module that consumes or
// relays applies them to its own schema.
func Migrations() pg.MigrationSet {
	return pg.MigrationSet{Name: "bus", FS: migrations, Rights: pg.Rights{
		"bus_positions": "SELECT, INSERT, UPDATE",
		"bus_relays":    "SELECT, INSERT, UPDATE",
		"bus_read":      "SELECT, INSERT, UPDATE",
		"bus_deferred":  "SELECT, INSERT, UPDATE, DELETE",
		"bus_parked":    "SELECT, INSERT, UPDATE, DELETE",
	}}
}
