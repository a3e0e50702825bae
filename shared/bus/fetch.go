package bus

import (
	"encoding/binary"
	"errors"
	"io"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// fetchVersion is the one version of Fetch that is spoken: brokers since Kafka 3.1 know it. It names the topic by its id, so that
// nobody ever reads on in another topic of the same name.
const fetchVersion = 13

// fetch is a Fetch request for several partitions of one topic at one broker, and its answer. It goes over kafka-go's connection
// but not through kafka-go's decoder, which drops the last offset of a batch: without it nobody can tell how far a batch
// reaches whose records compaction has removed.
type fetch struct {
	topic      topicID
	waitMillis int32
	maxBytes   int32 // of the answer; one batch always fits
	partitions []fetchPartition

	clientID string
	memory   []byte // takes the answer where it is large enough; afterwards what has taken it
	answers  []fetchAnswer
}

type fetchPartition struct {
	partition int32
	offset    int64
	maxBytes  int32
	fresh     bool // nothing was heard of it yet
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
	body, err := readAnswer(rw, f.memory)
	if err != nil {
		return nil, err
	}
	f.memory = body
	return f, f.decode(body)
}

func (f *fetch) encode() []byte {
	b := appendHead(make([]byte, 0, 128+36*len(f.partitions)), int16(protocol.Fetch), fetchVersion, f.clientID)
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // replica: we are none
	b = binary.BigEndian.AppendUint32(b, uint32(f.waitMillis))
	b = binary.BigEndian.AppendUint32(b, 1) // least bytes: answer as soon as there is anything
	b = binary.BigEndian.AppendUint32(b, uint32(f.maxBytes))
	b = append(b, 0)                                 // isolation: read uncommitted
	b = binary.BigEndian.AppendUint32(b, 0)          // no fetch session
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // its epoch
	b = appendCompactLength(b, 1)
	b = append(b, f.topic[:]...)
	b = appendCompactLength(b, len(f.partitions))
	for _, p := range f.partitions {
		b = binary.BigEndian.AppendUint32(b, uint32(p.partition))
		b = binary.BigEndian.AppendUint32(b, 0xffffffff) // leader epoch: unchecked
		b = binary.BigEndian.AppendUint64(b, uint64(p.offset))
		b = binary.BigEndian.AppendUint32(b, 0xffffffff)         // epoch of the last record: unchecked
		b = binary.BigEndian.AppendUint64(b, 0xffffffffffffffff) // log start: for replicas
		b = binary.BigEndian.AppendUint32(b, uint32(p.maxBytes))
		b = append(b, noTags)
	}
	b = append(b, noTags)
	b = appendCompactLength(b, 0)  // nothing forgotten
	b = appendCompactString(b, "") // rack
	return sized(append(b, noTags))
}

func (f *fetch) decode(body []byte) error {
	r := &scanner{rest: body}
	r.int32() // correlation
	r.tags()
	r.int32() // throttle
	if code := kafka.Error(r.int16()); code != 0 {
		return code
	}
	r.int32() // session
	for range r.compactItems(18) {
		r.topicID() // we asked for one
		for range r.compactItems(37) {
			f.answers = append(f.answers, scanAnswer(r))
		}
		r.tags()
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
	for range r.compactItems(17) { // aborted transactions, null for none
		r.int64()
		r.int64()
		r.tags()
	}
	r.int32() // preferred replica
	a.records = r.compact()
	r.tags()
	return a
}
