package bus

import (
	"errors"
	"io"
	"net"
	"strconv"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// metadataVersion is the one version of Metadata that is spoken: brokers since Kafka 2.8 know it. kafka-go's own ends before the
// first one that tells the ids of topics.
const metadataVersion = 10

// metadata is a Metadata request for topics, and its answer.
type metadata struct {
	topics   []string // none: all
	clientID string

	seen layout
}

// layout is who leads what, as one broker saw it at one moment.
type layout struct {
	brokers    map[int32]string // address by id
	controller int32
	topics     map[string]topicLayout
}

// topicLayout is one topic of a layout: the leader of each partition, -1 where there is none. err is why the topic is not known.
type topicLayout struct {
	id      topicID
	leaders []int32
	err     error
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
	body, err := readAnswer(rw, nil)
	if err != nil {
		return nil, err
	}
	return m, m.decode(body)
}

func (m *metadata) encode() []byte {
	b := appendHead(make([]byte, 0, 128), int16(protocol.Metadata), metadataVersion, m.clientID)
	if len(m.topics) == 0 {
		b = append(b, 0) // null: all
	} else {
		b = appendCompactLength(b, len(m.topics))
	}
	for _, name := range m.topics {
		b = append(b, make([]byte, len(topicID{}))...)
		b = appendCompactString(b, name)
		b = append(b, noTags)
	}
	b = append(b, 0, 0, 0) // no automatic creation, no operations that are allowed
	return sized(append(b, noTags))
}

func (m *metadata) decode(body []byte) error {
	r := &scanner{rest: body}
	r.int32() // correlation
	r.tags()
	r.int32() // throttle
	m.seen = layout{brokers: make(map[int32]string), topics: make(map[string]topicLayout)}
	for range r.compactItems(11) {
		id := r.int32()
		m.seen.brokers[id] = net.JoinHostPort(string(r.compact()), strconv.Itoa(int(r.int32())))
		r.compact() // rack
		r.tags()
	}
	r.compact() // cluster
	m.seen.controller = r.int32()
	for range r.compactItems(26) {
		name, t := scanTopic(r)
		m.seen.topics[name] = t
	}
	if r.bad {
		return errors.New("cannot read an answer to Metadata: it ends too early")
	}
	return nil
}

func scanTopic(r *scanner) (name string, t topicLayout) {
	code := kafka.Error(r.int16())
	name, t.id = string(r.compact()), r.topicID()
	r.bytes(1) // internal
	t.leaders = make([]int32, r.compactItems(18))
	gap := false
	for range t.leaders {
		index, leader := scanPartition(r)
		if index < 0 || int(index) >= len(t.leaders) {
			gap = true
			continue
		}
		t.leaders[index] = leader
	}
	r.int32() // operations
	r.tags()
	switch {
	case code != 0:
		t = topicLayout{err: code}
	case gap:
		t = topicLayout{err: kafka.LeaderNotAvailable} // the broker does not know all of them yet
	}
	return name, t
}

func scanPartition(r *scanner) (index, leader int32) {
	r.int16() // error: said by the leader as well
	index, leader = r.int32(), r.int32()
	r.int32()     // leader epoch
	for range 3 { // replicas, those in sync, those offline
		for range r.compactItems(4) {
			r.int32()
		}
	}
	r.tags()
	return index, leader
}

// leaderOf is the address of who leads a partition, "" where nobody does.
func (l layout) leaderOf(topic string, partition int) string {
	leaders := l.topics[topic].leaders
	if partition >= len(leaders) {
		return ""
	}
	return l.brokers[leaders[partition]]
}
