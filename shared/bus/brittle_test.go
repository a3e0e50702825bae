package bus_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// network dials connections that break in a chosen way now and then.
type network struct {
	fault  func(n *network, c *brittle, written []byte) error
	mu     sync.Mutex
	random *rand.Rand
	healed atomic.Bool
	faults atomic.Int64
}

func (n *network) dialer() *kafka.Dialer {
	return &kafka.Dialer{ClientID: "test", Timeout: time.Second, DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &brittle{Conn: conn, network: n}, nil
	}}
}

// strikes reports, with one chance in so many, that a fault is to happen now.
func (n *network) strikes(in int) bool {
	if n.healed.Load() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.random.IntN(in) != 0 {
		return false
	}
	n.faults.Add(1)
	return true
}

// topicName makes a part of a topic's name of a test's.
func topicName(text string) string { return strings.ReplaceAll(text, " ", "-") }

// brittle is a connection of a network.
type brittle struct {
	net.Conn
	network *network
	deaf    atomic.Bool // answers do not arrive any more
	mute    atomic.Bool // nor does the end of the connection
	slow    atomic.Bool
}

// isProduce reports whether a write begins a Produce request.
func isProduce(b []byte) bool {
	return len(b) >= 8 && binary.BigEndian.Uint16(b[4:]) == 0 && binary.BigEndian.Uint16(b[6:]) <= 13
}

func (c *brittle) Write(b []byte) (int, error) {
	if err := c.network.fault(c.network, c, b); err != nil {
		c.Close()
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *brittle) Read(b []byte) (int, error) {
	if c.slow.Load() && len(b) > 7 {
		time.Sleep(5 * time.Millisecond) // the fault is the pace
		b = b[:7]
	}
	n, err := c.Conn.Read(b)
	if c.deaf.Load() && err == nil {
		if c.mute.Load() {
			return c.Read(b) // swallow until the deadline
		}
		c.Close()
		return 0, errors.New("connection reset by the test")
	}
	return n, err
}
