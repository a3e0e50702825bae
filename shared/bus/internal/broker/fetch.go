package broker

import (
	"encoding/binary"
	"errors"
	"io"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// fetchVersion is the used version of Fetch, since Kafka 3.1. It names
// the topic by id, so that a reader never continues in another topic of
// the same name.
const fetchVersion = 13

// Fetch is a request for several partitions of one topic at one broker,
// and its answer. It does not use kafka-go's decoder, which drops a
// batch's last offset: without it the end of a compacted batch is unknown.
type Fetch struct {
	Topic      wire.TopicID
	WaitMillis int32
	MaxBytes   int32 // of the answer; one batch always fits
	Partitions []FetchPartition

	ClientID string
	Memory   []byte // for the answer if it fits; afterwards the answer's memory
	Answers  []FetchAnswer
}

type FetchPartition struct {
	Partition int32
	Offset    int64
	MaxBytes  int32
	Fresh     bool // not answered yet
}

// FetchAnswer is a broker's answer for one partition. Records aliases
// the answer's buffer.
type FetchAnswer struct {
	Partition     int32
	Code          kafka.Error
	HighWatermark int64
	logStart      int64
	Records       []byte
}

var (
	_ protocol.Message      = (*Fetch)(nil)
	_ protocol.RawExchanger = (*Fetch)(nil)
)

func (f *Fetch) ApiKey() protocol.ApiKey { return protocol.Fetch } //nolint:staticcheck // the name that kafka-go asks for

// Required makes kafka-go call RawExchange.
func (f *Fetch) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange writes the request and reads the whole answer.
func (f *Fetch) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if _, err := rw.Write(f.encode()); err != nil {
		return nil, err
	}
	body, err := ReadAnswer(rw, f.Memory)
	if err != nil {
		return nil, err
	}
	f.Memory = body
	return f, f.decode(body)
}

func (f *Fetch) encode() []byte {
	b := wire.AppendHead(make([]byte, 0, 128+36*len(f.Partitions)), int16(protocol.Fetch), fetchVersion, f.ClientID)
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // replica: none
	b = binary.BigEndian.AppendUint32(b, uint32(f.WaitMillis))
	b = binary.BigEndian.AppendUint32(b, 1) // least bytes: answer once there is any
	b = binary.BigEndian.AppendUint32(b, uint32(f.MaxBytes))
	b = append(b, 0)                                 // isolation: read uncommitted
	b = binary.BigEndian.AppendUint32(b, 0)          // no fetch session
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // its epoch
	b = wire.AppendCompactLength(b, 1)
	b = append(b, f.Topic[:]...)
	b = wire.AppendCompactLength(b, len(f.Partitions))
	for _, p := range f.Partitions {
		b = binary.BigEndian.AppendUint32(b, uint32(p.Partition))
		b = binary.BigEndian.AppendUint32(b, 0xffffffff) // leader epoch: unchecked
		b = binary.BigEndian.AppendUint64(b, uint64(p.Offset))
		b = binary.BigEndian.AppendUint32(b, 0xffffffff)         // epoch of the last record: unchecked
		b = binary.BigEndian.AppendUint64(b, 0xffffffffffffffff) // log start: for replicas
		b = binary.BigEndian.AppendUint32(b, uint32(p.MaxBytes))
		b = append(b, wire.NoTags)
	}
	b = append(b, wire.NoTags)
	b = wire.AppendCompactLength(b, 0)  // no forgotten topics
	b = wire.AppendCompactString(b, "") // rack
	return wire.Sized(append(b, wire.NoTags))
}

func (f *Fetch) decode(body []byte) error {
	r := &wire.Scanner{Rest: body}
	r.Int32() // correlation
	r.Tags()
	r.Int32() // throttle
	if code := kafka.Error(r.Int16()); code != 0 {
		return code
	}
	r.Int32() // session
	for range r.CompactItems(18) {
		r.TopicID() // the requested one
		for range r.CompactItems(37) {
			f.Answers = append(f.Answers, scanAnswer(r))
		}
		r.Tags()
	}
	if r.Bad {
		return errors.New("cannot read an answer to Fetch: it ends too early")
	}
	return nil
}

func scanAnswer(r *wire.Scanner) FetchAnswer {
	a := FetchAnswer{Partition: r.Int32(), Code: kafka.Error(r.Int16()), HighWatermark: r.Int64()}
	r.Int64() // last stable offset
	a.logStart = r.Int64()
	for range r.CompactItems(17) { // aborted transactions, null for none
		r.Int64()
		r.Int64()
		r.Tags()
	}
	r.Int32() // preferred replica
	a.Records = r.Compact()
	r.Tags()
	return a
}
