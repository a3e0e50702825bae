package bustest

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

// Network dials connections that sometimes fail in a chosen way.
type Network struct {
	Fault  func(n *Network, c *BrittleConn, written []byte) error
	mu     sync.Mutex
	Random *rand.Rand
	Healed atomic.Bool
	Faults atomic.Int64
}

func (n *Network) Dialer() *kafka.Dialer {
	return &kafka.Dialer{ClientID: "test", Timeout: time.Second, DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &BrittleConn{Conn: conn, network: n}, nil
	}}
}

// Strikes reports, with a chance of one in so many, that a fault is due.
func (n *Network) Strikes(in int) bool {
	if n.Healed.Load() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.Random.IntN(in) != 0 {
		return false
	}
	n.Faults.Add(1)
	return true
}

// TopicName turns the name of a test into part of a topic's name.
func TopicName(text string) string { return strings.ReplaceAll(text, " ", "-") }

// BrittleConn is a connection of a network.
type BrittleConn struct {
	net.Conn
	network      *Network
	LosesAnswers atomic.Bool // answers no longer arrive
	HidesClose   atomic.Bool // nor does the end of the connection
	Slow         atomic.Bool
}

// IsProduce reports whether a write begins a Produce request.
func IsProduce(b []byte) bool {
	return len(b) >= 8 && binary.BigEndian.Uint16(b[4:]) == 0 && binary.BigEndian.Uint16(b[6:]) <= 13
}

func (c *BrittleConn) Write(b []byte) (int, error) {
	if err := c.network.Fault(c.network, c, b); err != nil {
		c.Close()
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *BrittleConn) Read(b []byte) (int, error) {
	if c.Slow.Load() && len(b) > 7 {
		time.Sleep(5 * time.Millisecond) // the fault is the pace
		b = b[:7]
	}
	n, err := c.Conn.Read(b)
	if c.LosesAnswers.Load() && err == nil {
		if c.HidesClose.Load() {
			return c.Read(b) // discard until the deadline
		}
		c.Close()
		return 0, errors.New("connection reset by the test")
	}
	return n, err
}
