package broker

import (
	"errors"
	"io"
	"net"
	"strconv"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// metadataVersion is the used version of Metadata, since Kafka 2.8.
// kafka-go's own has no topic ids.
const metadataVersion = 10

// metadata is a Metadata request for topics, and its answer.
type metadata struct {
	topics     []string // none: all
	clientID   string
	operations bool // asks for the user's rights to each topic

	seen Layout
}

// Layout is brokers, topics and leaders as one broker saw them at one instant.
type Layout struct {
	Brokers    map[int32]string // addresses by id
	Controller int32
	Topics     map[string]TopicLayout // bounded by those asked for
}

// TopicLayout is one topic of a layout: the leader of each partition,
// -1 for none. Err is why the topic is unknown.
type TopicLayout struct {
	ID       wire.TopicID
	Leaders  []int32
	Replicas []int // for each partition, how many
	InSync   []int // of them
	Err      error

	Operations int32 // the user's rights, a bit each, if asked for
}

// UnderReplicated returns how many partitions have replicas out of sync.
func (t TopicLayout) UnderReplicated() (partitions int) {
	for i, replicas := range t.Replicas {
		if t.InSync[i] < replicas {
			partitions++
		}
	}
	return partitions
}

var (
	_ protocol.Message      = (*metadata)(nil)
	_ protocol.RawExchanger = (*metadata)(nil)
)

func (m *metadata) ApiKey() protocol.ApiKey { return protocol.Metadata } //nolint:staticcheck // the name that kafka-go asks for

// Required makes kafka-go call RawExchange.
func (m *metadata) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange writes the request and reads the whole answer.
func (m *metadata) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if _, err := rw.Write(m.encode()); err != nil {
		return nil, err
	}
	body, err := ReadAnswer(rw, nil)
	if err != nil {
		return nil, err
	}
	return m, m.decode(body)
}

func (m *metadata) encode() []byte {
	b := wire.AppendHead(make([]byte, 0, 128), int16(protocol.Metadata), metadataVersion, m.clientID)
	if len(m.topics) == 0 {
		b = append(b, 0) // null: all
	} else {
		b = wire.AppendCompactLength(b, len(m.topics))
	}
	for _, name := range m.topics {
		b = append(b, make([]byte, len(wire.TopicID{}))...)
		b = wire.AppendCompactString(b, name)
		b = append(b, wire.NoTags)
	}
	b = append(b, 0, 0) // no automatic creation, no rights to the cluster
	if m.operations {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return wire.Sized(append(b, wire.NoTags))
}

func (m *metadata) decode(body []byte) error {
	r := &wire.Scanner{Rest: body}
	r.Int32() // correlation
	r.Tags()
	r.Int32() // throttle
	m.seen = Layout{Brokers: make(map[int32]string), Topics: make(map[string]TopicLayout)}
	for range r.CompactItems(11) {
		id := r.Int32()
		m.seen.Brokers[id] = net.JoinHostPort(string(r.Compact()), strconv.Itoa(int(r.Int32())))
		r.Compact() // rack
		r.Tags()
	}
	r.Compact() // cluster
	m.seen.Controller = r.Int32()
	for range r.CompactItems(26) {
		name, t := scanTopic(r)
		m.seen.Topics[name] = t
	}
	if r.Bad {
		return errors.New("cannot read an answer to Metadata: it ends too early")
	}
	return nil
}

func scanTopic(r *wire.Scanner) (name string, t TopicLayout) {
	code := kafka.Error(r.Int16())
	name, t.ID = string(r.Compact()), r.TopicID()
	r.Bytes(1) // internal
	partitions := r.CompactItems(18)
	t.Leaders, t.Replicas, t.InSync = make([]int32, partitions), make([]int, partitions), make([]int, partitions)
	gap := false
	for range partitions {
		index, leader, replicas, inSync := scanPartition(r)
		if index < 0 || int(index) >= partitions {
			gap = true
			continue
		}
		t.Leaders[index], t.Replicas[index], t.InSync[index] = leader, replicas, inSync
	}
	t.Operations = r.Int32()
	r.Tags()
	switch {
	case code != 0:
		t = TopicLayout{Err: code}
	case gap:
		t = TopicLayout{Err: kafka.LeaderNotAvailable} // the broker does not know all partitions yet
	}
	return name, t
}

func scanPartition(r *wire.Scanner) (index, leader int32, replicas, inSync int) {
	r.Int16() // error: the leader returns it as well
	index, leader = r.Int32(), r.Int32()
	r.Int32() // leader epoch
	replicas, inSync = skipNodes(r), skipNodes(r)
	skipNodes(r) // offline replicas
	r.Tags()
	return index, leader, replicas, inSync
}

// skipNodes skips the ids of nodes and returns how many there are.
func skipNodes(r *wire.Scanner) int {
	n := r.CompactItems(4)
	for range n {
		r.Int32()
	}
	return n
}

// LeaderOf returns the address of a partition's leader, "" for none.
func (l Layout) LeaderOf(topic string, partition int) string {
	leaders := l.Topics[topic].Leaders
	if partition >= len(leaders) {
		return ""
	}
	return l.Brokers[leaders[partition]]
}
