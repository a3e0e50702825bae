package kafka

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxRequestBytes is the largest accepted request,
// Apache Kafka's socket.request.max.bytes.
const maxRequestBytes = 100 << 20

// oldestServed is the oldest version of a request that Apache Kafka 4.0
// serves, if that is not version 0 (KIP-896). Its answer to ApiVersions
// lists these, except Produce with version 0, for an old library.
// Metadata, FindCoordinator, Heartbeat, SyncGroup, LeaveGroup,
// ApiVersions and SASL lost nothing.
var oldestServed = map[kmsg.Key]int16{
	kmsg.Produce:              3,
	kmsg.Fetch:                4,
	kmsg.ListOffsets:          1,
	kmsg.OffsetCommit:         2,
	kmsg.OffsetFetch:          1,
	kmsg.JoinGroup:            2,
	kmsg.CreateTopics:         2,
	kmsg.DeleteTopics:         1,
	kmsg.OffsetForLeaderEpoch: 2,
	kmsg.DescribeConfigs:      1,

	kmsg.WriteTxnMarkers:         1,
	kmsg.DescribeACLs:            1,
	kmsg.CreateACLs:              1,
	kmsg.DeleteACLs:              1,
	kmsg.AlterReplicaLogDirs:     1,
	kmsg.DescribeLogDirs:         1,
	kmsg.CreateDelegationToken:   1,
	kmsg.RenewDelegationToken:    1,
	kmsg.ExpireDelegationToken:   1,
	kmsg.DescribeDelegationToken: 1,
}

// A listener admits clients once it is open, and checks the head of each
// request: kfake trusts its input, so a stray browser would end the process.
type listener struct {
	net.Listener
	logger        *slog.Logger
	refuseDropped bool
	anonymous     bool // no authentication
	opened        chan struct{}
	closed        chan struct{}
	openOnce      sync.Once
	closeOnce     sync.Once

	mu      sync.Mutex
	refused []string
}

func newListener(ln net.Listener, cfg Config) *listener {
	return &listener{
		Listener: ln, logger: cfg.Logger, refuseDropped: cfg.RefuseDropped, anonymous: cfg.Open,
		opened: make(chan struct{}), closed: make(chan struct{}),
	}
}

func (l *listener) open() { l.openOnce.Do(func() { close(l.opened) }) }

// Accept waits until the broker is open, then for a client.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.opened:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &requestConn{Conn: conn, check: l.check, closed: l.closed, logger: l.logger}
	if !l.anonymous {
		c.signIn = &signIn{}
	}
	return c, nil
}

func (l *listener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// check returns why a request must not reach the broker, nil if it may.
func (l *listener) check(size uint32, key kmsg.Key, version int16) error {
	request := kmsg.RequestForKey(int16(key))
	if request == nil || size > maxRequestBytes {
		return l.refuse("embedded broker: a client that does not speak Kafka was turned away", "size", size, "key", key)
	}
	if l.refuseDropped && version < oldestServed[key] {
		l.remember(fmt.Sprintf("%s v%d", key.Name(), version))
		return l.refuse("embedded broker: Apache Kafka 4 does not serve this request any more", "request", key.Name(), "version", version)
	}
	return nil
}

func (l *listener) refuse(why string, args ...any) error {
	l.logger.Warn(why, args...)
	return io.ErrUnexpectedEOF
}

func (l *listener) remember(request string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = append(l.refused, request)
}

func (l *listener) refusals() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.refused)
}

// headBytes is the length of every request's head: size, key, version
// and correlation id.
const headBytes = 12

// A requestConn passes the head of each request to check before the
// reader sees it.
//
// It also hides that a client is gone while the client's JoinGroup or
// SyncGroup is unanswered: kfake watches a group member only after its
// answer, so a client killed before would stay a member forever, with
// unread partitions. Apache Kafka does not watch the connection either.
type requestConn struct {
	net.Conn
	check  func(size uint32, key kmsg.Key, version int16) error
	closed <-chan struct{} // when the broker stops
	logger *slog.Logger
	signIn *signIn // nil: not needed
	gone   atomic.Bool
	head   []byte // of the current head, what the reader has not read
	left   uint32 // bytes of the request after the head, not read yet

	mu       sync.Mutex
	number   uint32        // of the unanswered JoinGroup or SyncGroup
	answered chan struct{} // closed by its answer; nil: none is expected
}

// Read passes requests on, never more than the rest of one.
func (c *requestConn) Read(p []byte) (int, error) {
	if len(c.head) == 0 && c.left == 0 {
		if err := c.readHead(); err != nil {
			c.gone.Store(true)
			c.awaitAnswer()
			return 0, err
		}
	}
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p[:min(len(p), int(c.left))])
	c.left -= uint32(n)
	return n, err
}

func (c *requestConn) readHead() error {
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head)
	if size < headBytes-4 {
		return io.ErrUnexpectedEOF
	}
	key, version := kmsg.Key(binary.BigEndian.Uint16(head[4:])), int16(binary.BigEndian.Uint16(head[6:]))
	if err := c.check(size, key, version); err != nil {
		return err
	}
	if err := c.checkSignIn(size, key, binary.BigEndian.Uint32(head[8:])); err != nil {
		return err
	}
	if key == kmsg.JoinGroup || key == kmsg.SyncGroup {
		c.expectAnswer(binary.BigEndian.Uint32(head[8:]))
	}
	c.head, c.left = head, size-(headBytes-4)
	return nil
}

// checkSignIn refuses requests that need authentication.
func (c *requestConn) checkSignIn(size uint32, key kmsg.Key, number uint32) error {
	if c.signIn == nil {
		return nil
	}
	if !c.signIn.admits(size, key) {
		c.logger.Warn("embedded broker: a client that has not signed in was turned away", "client", c.RemoteAddr(), "request", key.Name(), "size", size)
		return io.ErrUnexpectedEOF
	}
	if key == kmsg.SASLAuthenticate {
		c.signIn.ask(number)
	}
	return nil
}

// Close logs a failed sign-in: the broker closes the connection while
// the client is still there.
func (c *requestConn) Close() error {
	if c.signIn != nil && c.signIn.refused() && !c.gone.Swap(true) {
		select {
		case <-c.closed:
		default:
			c.logger.Warn("embedded broker: a sign-in was refused: the user or its password is wrong", "client", c.RemoteAddr())
		}
	}
	return c.Conn.Close()
}

func (c *requestConn) expectAnswer(number uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number, c.answered = number, make(chan struct{})
}

// awaitAnswer waits for an expected answer.
func (c *requestConn) awaitAnswer() {
	c.mu.Lock()
	answered := c.answered
	c.mu.Unlock()
	if answered == nil {
		return
	}
	select {
	case <-answered:
	case <-c.closed:
	}
}

// Write sends an answer; kfake writes each with one call.
func (c *requestConn) Write(p []byte) (int, error) {
	if c.signIn != nil && len(p) >= 8 {
		c.signIn.answer(binary.BigEndian.Uint32(p[4:])) // before the client can read it and continue
	}
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered != nil && len(p) >= 8 && binary.BigEndian.Uint32(p[4:]) == c.number {
		close(c.answered)
		c.answered = nil
	}
	return n, err
}
