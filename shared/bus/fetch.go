package bus

import (
	"encoding/binary"
	"errors"
	"io"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// fetchVersion is the one version of Fetch that is spoken: brokers since Kafka 2.3 know it, Kafka 4 still does.
const fetchVersion = 11

// fetch is a Fetch request for several partitions of one topic at one broker, and its answer. It goes over kafka-go's connection
// but not through kafka-go's decoder, which drops the last offset of a batch: without it nobody can tell how far a batch
// reaches whose records compaction has removed.
type fetch struct {
	topic      string
	waitMillis int32
	maxBytes   int32 // of the answer; one batch always fits
	partitions []fetchPartition

	clientID string
	answers  []fetchAnswer
}

type fetchPartition struct {
	partition int32
	offset    int64
	maxBytes  int32
}

// fetchAnswer is what a broker says of one partition. records aliases the answer's buffer.
type fetchAnswer struct {
	partition     int32
	code          kafka.Error
	highWatermark int64
	logStart      int64
	records       []byte
}

var (
	_ protocol.Message      = (*fetch)(nil)
	_ protocol.RawExchanger = (*fetch)(nil)
)

func (f *fetch) ApiKey() protocol.ApiKey { return protocol.Fetch } //nolint:staticcheck // the name that kafka-go asks for

// Required makes kafka-go leave the exchange to us.
func (f *fetch) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange writes the request and reads the whole answer.
func (f *fetch) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if _, err := rw.Write(f.encode()); err != nil {
		return nil, err
	}
	body, err := readAnswer(rw)
	if err != nil {
		return nil, err
	}
	return f, f.decode(body)
}

func (f *fetch) encode() []byte {
	b := make([]byte, 4, 128+len(f.topic)+28*len(f.partitions))
	b = binary.BigEndian.AppendUint16(b, uint16(protocol.Fetch))
	b = binary.BigEndian.AppendUint16(b, fetchVersion)
	b = binary.BigEndian.AppendUint32(b, 0) // correlation: there is one request at a time
	b = appendString(b, f.clientID)
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // replica: we are none
	b = binary.BigEndian.AppendUint32(b, uint32(f.waitMillis))
	b = binary.BigEndian.AppendUint32(b, 1) // least bytes: answer as soon as there is anything
	b = binary.BigEndian.AppendUint32(b, uint32(f.maxBytes))
	b = append(b, 0)                                 // isolation: read uncommitted
	b = binary.BigEndian.AppendUint32(b, 0)          // no fetch session
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // its epoch
	b = binary.BigEndian.AppendUint32(b, 1)
	b = appendString(b, f.topic)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.partitions)))
	for _, p := range f.partitions {
		b = binary.BigEndian.AppendUint32(b, uint32(p.partition))
		b = binary.BigEndian.AppendUint32(b, 0xffffffff) // leader epoch: unchecked
		b = binary.BigEndian.AppendUint64(b, uint64(p.offset))
		b = binary.BigEndian.AppendUint64(b, 0xffffffffffffffff) // log start: for replicas
		b = binary.BigEndian.AppendUint32(b, uint32(p.maxBytes))
	}
	b = binary.BigEndian.AppendUint32(b, 0) // nothing forgotten
	b = appendString(b, "")                 // rack
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

func (f *fetch) decode(body []byte) error {
	r := &scanner{rest: body}
	r.int32() // correlation
	r.int32() // throttle
	if code := kafka.Error(r.int16()); code != 0 {
		return code
	}
	r.int32() // session
	for range r.items(2) {
		r.bytes(int(r.int16())) // topic: we asked for one
		for range r.items(4) {
			f.answers = append(f.answers, scanAnswer(r))
		}
	}
	if r.bad {
		return errors.New("cannot read an answer to Fetch: it ends too early")
	}
	return nil
}

func scanAnswer(r *scanner) fetchAnswer {
	a := fetchAnswer{partition: r.int32(), code: kafka.Error(r.int16()), highWatermark: r.int64()}
	r.int64() // last stable offset
	a.logStart = r.int64()
	for range r.items(16) { // aborted transactions, -1 for none
		r.int64()
		r.int64()
	}
	r.int32() // preferred replica
	a.records = r.bytes(int(r.int32()))
	return a
}

// scanner reads Kafka's primitive types. Once it runs out of bytes it is bad and returns zeros.
type scanner struct {
	rest []byte
	bad  bool
}

// bytes returns the next n bytes, nil for a negative n.
func (r *scanner) bytes(n int) []byte {
	if n < 0 {
		return nil
	}
	if n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// items returns how many items follow, each of at least so many bytes. A number that cannot be is bad and returned as 0.
func (r *scanner) items(least int) int {
	n := int(r.int32())
	if n > len(r.rest)/least {
		r.bad, n = true, 0
	}
	return max(n, 0)
}

func (r *scanner) int16() int16 {
	if b := r.bytes(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *scanner) int32() int32 {
	if b := r.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *scanner) int64() int64 {
	if b := r.bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *scanner) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}
