package publisher

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

const (
	// gatherBytes is the size up to which a request is copied into one
	// piece: one write of a copy is then cheaper than several.
	gatherBytes = 32 << 10
)

// production is a Produce request for batches of several partitions, and
// its answer. It does not use kafka-go's encoder, which copies every
// batch and writes it in pieces: the batches' own bytes go to the socket.
type production struct {
	clientID  string
	shipments []shipment
	timeout   time.Duration
	socket    net.Conn

	answers []produceAnswer
}

// produceAnswer is a broker's answer to one batch.
type produceAnswer struct {
	topic     string
	partition int
	code      kafka.Error
	offset    int64
}

var (
	_ protocol.Message      = (*production)(nil)
	_ protocol.RawExchanger = (*production)(nil)
)

func (p *production) ApiKey() protocol.ApiKey { return protocol.Produce } //nolint:staticcheck // the name that kafka-go asks for

// Required makes kafka-go call RawExchange.
func (p *production) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange writes the request and reads the whole answer.
func (p *production) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if err := p.write(); err != nil {
		return nil, err
	}
	body, err := broker.ReadAnswer(rw, nil)
	if err != nil {
		return nil, err
	}
	return p, p.decode(body)
}

// write sends the batches and the parts between, without copying large ones.
func (p *production) write() error {
	parts, size := p.parts()
	if size > gatherBytes {
		_, err := parts.WriteTo(p.socket)
		return err
	}
	whole := batch.TakeBuffer(size)
	for _, part := range parts {
		whole = append(whole, part...)
	}
	_, err := p.socket.Write(whole)
	batch.GiveBuffer(whole)
	return err
}

// parts lays out the request: the parts around the batches are one
// piece of memory, split at each batch.
func (p *production) parts() (parts net.Buffers, size int) {
	frame := make([]byte, 4, 64+len(p.clientID)+64*len(p.shipments))
	cuts := make([]int, 0, len(p.shipments))
	frame = p.appendHead(frame)
	groups := p.byTopic()
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(groups)))
	for _, group := range groups {
		frame = wire.AppendString(frame, group[0].partition.topic)
		frame = binary.BigEndian.AppendUint32(frame, uint32(len(group)))
		for _, s := range group {
			frame = binary.BigEndian.AppendUint32(frame, uint32(s.partition.index))
			cuts = append(cuts, len(frame))
			size += len(s.batch.Buffer)
		}
	}
	size += len(frame)
	binary.BigEndian.PutUint32(frame, uint32(size-4))
	parts = make(net.Buffers, 0, 2*len(cuts))
	from := 0
	for _, group := range groups {
		for _, s := range group {
			parts = append(parts, frame[from:cuts[0]], s.batch.Buffer)
			from, cuts = cuts[0], cuts[1:]
		}
	}
	return parts, size
}

func (p *production) appendHead(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(protocol.Produce))
	b = binary.BigEndian.AppendUint16(b, broker.ProduceVersion)
	b = binary.BigEndian.AppendUint32(b, 0) // correlation: one request at a time
	b = wire.AppendString(b, p.clientID)
	b = binary.BigEndian.AppendUint16(b, 0xffff) // no transaction
	b = binary.BigEndian.AppendUint16(b, 0xffff) // acks: all
	return binary.BigEndian.AppendUint32(b, uint32(p.timeout.Milliseconds()))
}

// byTopic groups the shipments; there is rarely more than one topic.
func (p *production) byTopic() [][]shipment {
	var groups [][]shipment
next:
	for i, s := range p.shipments {
		for g := range groups {
			if groups[g][0].partition.topic == s.partition.topic {
				groups[g] = append(groups[g], s)
				continue next
			}
		}
		groups = append(groups, append(make([]shipment, 0, len(p.shipments)-i), s))
	}
	return groups
}

func (p *production) decode(body []byte) error {
	r := &wire.Scanner{Rest: body}
	r.Int32() // correlation
	for range r.Items(2) {
		topic := string(r.Bytes(int(r.Int16())))
		for range r.Items(4) {
			p.answers = append(p.answers, scanProduceAnswer(r, topic))
		}
	}
	if r.Bad {
		return errors.New("cannot read an answer to Produce: it ends too early")
	}
	return nil
}

func scanProduceAnswer(r *wire.Scanner, topic string) produceAnswer {
	a := produceAnswer{topic: topic, partition: int(r.Int32()), code: kafka.Error(r.Int16()), offset: r.Int64()}
	r.Int64() // time of the append
	r.Int64() // start of the log
	for range r.Items(6) {
		r.Int32()
		r.Bytes(int(r.Int16())) // the record at fault, and why
	}
	r.Bytes(int(r.Int16())) // the batch's fault
	return a
}

// answerTo finds the answer for a shipment; a broker may omit it.
func (p *production) answerTo(s shipment) produceAnswer {
	for _, a := range p.answers {
		if a.partition == s.partition.index && a.topic == s.partition.topic {
			return a
		}
	}
	return produceAnswer{code: kafka.Unknown}
}

// producer holds the identity given by the brokers, for all partitions:
// sequences are per partition.
type producer struct {
	mu      sync.Mutex
	current batch.Identity
	known   bool
}

// get returns the identity, or asks for one. Other callers wait
// meanwhile: they need it too.
func (p *producer) get(ask func() (batch.Identity, error)) (batch.Identity, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return p.current, nil
	}
	fresh, err := ask()
	if err != nil {
		return batch.Identity{}, err
	}
	p.current, p.known = fresh, true
	return fresh, nil
}

// renounce makes the next get ask for a new identity if old is current.
// Partitions with a batch in flight keep old until it is settled: the
// brokers still accept it.
func (p *producer) renounce(old batch.Identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == old {
		p.known = false
	}
}
