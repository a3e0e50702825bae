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

// metadataVersion is the one version of Metadata in use, since
// Kafka 2.8. kafka-go's own has no topic ids.
const metadataVersion = 10

// metadata is a Metadata request for topics, and its answer.
type metadata struct {
	topics     []string // none: all
	clientID   string
	operations bool // asks what the user may do with each topic

	seen Layout
}

// Layout is who leads what, as one broker saw it at one moment.
type Layout struct {
	Brokers    map[int32]string // address by id
	Controller int32
	Topics     map[string]TopicLayout // bounded by the topics asked about
}

// TopicLayout is one topic of a layout: the leader of each partition, -1 where
// there is none. Err is why the topic is unknown.
type TopicLayout struct {
	ID       wire.TopicID
	Leaders  []int32
	Replicas []int // how many each partition has
	InSync   []int // of them
	Err      error

	Operations int32 // what the user may do, a bit each, where it was asked for
}

// UnderReplicated is how many partitions lack copies that are in sync.
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

// Required makes kafka-go leave the exchange to us.
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
	b = append(b, 0, 0) // no automatic creation, no operations that are allowed on the cluster
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
		t = TopicLayout{Err: kafka.LeaderNotAvailable} // the broker does not have all of them yet
	}
	return name, t
}

func scanPartition(r *wire.Scanner) (index, leader int32, replicas, inSync int) {
	r.Int16() // error: the leader answers it as well
	index, leader = r.Int32(), r.Int32()
	r.Int32() // leader epoch
	replicas, inSync = skipNodes(r), skipNodes(r)
	skipNodes(r) // those offline
	r.Tags()
	return index, leader, replicas, inSync
}

// skipNodes passes over the ids of nodes and returns how many there are.
func skipNodes(r *wire.Scanner) int {
	n := r.CompactItems(4)
	for range n {
		r.Int32()
	}
	return n
}

// LeaderOf is the address of a partition's leader, "" where there is none.
func (l Layout) LeaderOf(topic string, partition int) string {
	leaders := l.Topics[topic].Leaders
	if partition >= len(leaders) {
		return ""
	}
	return l.Brokers[leaders[partition]]
}
