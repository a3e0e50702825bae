package kafkatest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv/fault"
)

// A Kafka broker advertises the addresses of all brokers, by which
// clients would bypass the network. So the networks before the nodes of
// a cluster replace these addresses in the answers. That works for any
// broker, wherever it runs and whatever it advertises, if the
// connection is neither encrypted nor compressed.

// NewNetworks puts a network before each node of a cluster, in the
// order of their advertised addresses.
func NewNetworks(nodes []string) ([]*fault.Network, error) {
	places := &places{networks: map[string]*fault.Network{}}
	var networks []*fault.Network
	for _, node := range nodes {
		n, err := fault.NewEditedNetwork(node, places.edit)
		if err != nil {
			for _, n := range networks {
				n.Close()
			}
			return nil, err
		}
		networks = append(networks, n)
		places.put(node, n)
	}
	return networks, nil
}

// places maps the advertised address of a node to its network.
type places struct {
	mu       sync.Mutex
	networks map[string]*fault.Network
}

func (p *places) put(node string, n *fault.Network) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.networks[node] = n
}

// move replaces a node's address. One without a network stays.
func (p *places) move(host *string, port *int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, found := p.networks[net.JoinHostPort(*host, strconv.Itoa(int(*port)))]
	if !found {
		return
	}
	h, text, _ := net.SplitHostPort(n.Address())
	number, _ := strconv.Atoi(text)
	*host, *port = h, int32(number)
}

func (p *places) edit(client, server net.Conn) (requests, answers io.Reader) {
	c := &conversation{places: p, open: map[uint32]kmsg.Request{}}
	return &frames{in: bufio.NewReader(client), edit: c.request}, &frames{in: bufio.NewReader(server), edit: c.answer}
}

// A conversation holds the unanswered requests of a connection.
type conversation struct {
	places *places
	mu     sync.Mutex
	open   map[uint32]kmsg.Request // by correlation id, those whose answers name brokers
}

// request notes a request: key, version and correlation id are the
// first eight bytes.
func (c *conversation) request(frame []byte) []byte {
	if len(frame) < 8 {
		return frame
	}
	req := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(frame)))
	if req == nil || !namesBrokers(req) {
		return frame
	}
	req.SetVersion(int16(binary.BigEndian.Uint16(frame[2:])))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[binary.BigEndian.Uint32(frame[4:])] = req
	return frame
}

func namesBrokers(req kmsg.Request) bool {
	switch req.(type) {
	case *kmsg.MetadataRequest, *kmsg.FindCoordinatorRequest, *kmsg.DescribeClusterRequest, *kmsg.ProduceRequest, *kmsg.FetchRequest:
		return true
	}
	return false
}

// answer moves the brokers that an answer names. Unknown
// answers pass unchanged.
func (c *conversation) answer(frame []byte) []byte {
	if len(frame) < 4 {
		return frame
	}
	id := binary.BigEndian.Uint32(frame)
	c.mu.Lock()
	req := c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	if req == nil {
		return frame
	}
	resp := req.ResponseKind()
	head := 4
	if resp.IsFlexible() {
		head = 5 // no tagged fields
	}
	if len(frame) < head || !wanted(resp) || resp.ReadFrom(frame[head:]) != nil {
		return frame
	}
	c.move(resp)
	return resp.AppendTo(bytes.Clone(frame[:head]))
}

// wanted skips the records of versions that name no new leaders, which
// need no decoding.
func wanted(resp kmsg.Response) bool {
	switch r := resp.(type) {
	case *kmsg.ProduceResponse:
		return r.Version >= 10
	case *kmsg.FetchResponse:
		return r.Version >= 16
	}
	return true
}

func (c *conversation) move(resp kmsg.Response) {
	switch r := resp.(type) {
	case *kmsg.MetadataResponse:
		for i := range r.Brokers {
			c.places.move(&r.Brokers[i].Host, &r.Brokers[i].Port)
		}
	case *kmsg.FindCoordinatorResponse:
		c.places.move(&r.Host, &r.Port)
		for i := range r.Coordinators {
			c.places.move(&r.Coordinators[i].Host, &r.Coordinators[i].Port)
		}
	case *kmsg.DescribeClusterResponse:
		for i := range r.Brokers {
			c.places.move(&r.Brokers[i].Host, &r.Brokers[i].Port)
		}
	case *kmsg.ProduceResponse:
		for i := range r.Brokers {
			c.places.move(&r.Brokers[i].Host, &r.Brokers[i].Port)
		}
	case *kmsg.FetchResponse:
		for i := range r.Brokers {
			c.places.move(&r.Brokers[i].Host, &r.Brokers[i].Port)
		}
	}
}

// maxFrame is the largest frame, Apache Kafka's socket.request.max.bytes.
const maxFrame = 100 << 20

// frames reads a stream of frames, each after its size, and passes
// each to edit.
type frames struct {
	in   *bufio.Reader
	edit func([]byte) []byte
	rest []byte
}

func (f *frames) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		frame, err := f.next()
		if err != nil {
			return 0, err
		}
		frame = f.edit(frame)
		f.rest = append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *frames) next() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(f.in, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return nil, errors.New("what goes through here is not Kafka's protocol")
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(f.in, frame)
	return frame, err
}
