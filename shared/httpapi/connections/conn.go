package connections

import (
	"container/list"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a connection. A reader has stallTimeout for each writeSize.
// The system buffers up to sendBuffer, and continues only when about a
// third of it is free: so 7 KB a second is fast enough.
const (
	stallTimeout  = 20 * time.Second
	writeSize     = 64 << 10
	sendBuffer    = 256 << 10 // the system adds its own overhead: a stalled reader costs it 512 KB at most
	lingerTimeout = time.Second
	lingerBytes   = 16 << 20
)

// A Conn is a connection in a Table. Its writes must be read in time,
// whatever its deadline.
type Conn struct {
	net.Conn
	Account *Account
	table   *Table

	network *network // the table owns these three
	state   State
	place   *list.Element // nil: not in the table

	ahead   []byte // read ahead, not yet returned by Read
	closing sync.Once
	lingers atomic.Bool
	pending atomic.Pointer[func()] // called once, before the next Read, Write or Close

	mu    sync.Mutex
	limit time.Time // as set by SetWriteDeadline
	pace  time.Time // of the current write
}

func newConn(raw net.Conn, t *Table, key netip.Prefix, trusted bool) *Conn {
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	return &Conn{Conn: raw, Account: newAccount(t, key, trusted), table: t}
}

// Set sets the connection's state.
func (c *Conn) Set(state State) { c.table.set(c, state) }

// Peek reads the first byte and keeps it for Read. From then on
// keep-alives detect a peer that has vanished.
func (c *Conn) Peek() (byte, error) {
	var first [1]byte
	if _, err := io.ReadFull(c.Conn, first[:]); err != nil {
		return 0, err
	}
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true})
	}
	c.ahead = first[:]
	return first[0], nil
}

// BeforeIO makes f run once, before the next Read, Write or Close.
func (c *Conn) BeforeIO(f func()) { c.pending.Store(&f) }

// AwaitsIO reports whether the function of BeforeIO is still to be called.
func (c *Conn) AwaitsIO() bool { return c.pending.Load() != nil }

func (c *Conn) beginIO() {
	if c.pending.Load() != nil {
		if f := c.pending.Swap(nil); f != nil {
			(*f)()
		}
	}
}

// Read returns bytes read ahead, then new ones.
func (c *Conn) Read(p []byte) (int, error) {
	c.beginIO()
	if len(c.ahead) > 0 && len(p) > 0 {
		n := copy(p, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Write writes p, and closes the connection if its reader is too slow.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.beginIO()
	for err == nil && n < len(p) {
		var taken int
		taken, err = c.writePart(p[n:min(n+writeSize, len(p))])
		n += taken
	}
	return n, err
}

func (c *Conn) writePart(p []byte) (int, error) {
	now := time.Now() //nolint:forbidigo // sockets use the system's time
	if err := c.begin(now.Add(c.table.config.Stall)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if c.end() && errors.Is(err, os.ErrDeadlineExceeded) {
		c.table.metrics.closed(reasonSlow)
		c.abort()
	}
	return n, err
}

// begin sets the deadline of a write: the pace, or an earlier one that was set.
func (c *Conn) begin(pace time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace = pace
	return c.Conn.SetWriteDeadline(earlier(c.pace, c.limit))
}

// end reports whether the pace limited the write.
func (c *Conn) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	paced := c.limit.IsZero() || c.pace.Before(c.limit)
	c.pace = time.Time{}
	return paced
}

// SetWriteDeadline limits writes in addition to their pace.
func (c *Conn) SetWriteDeadline(limit time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = limit
	if c.pace.IsZero() {
		return nil // the next write sets it
	}
	return c.Conn.SetWriteDeadline(earlier(c.pace, limit))
}

// SetDeadline calls SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(limit time.Time) error {
	return errors.Join(c.SetReadDeadline(limit), c.SetWriteDeadline(limit))
}

func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Linger makes Close wait a little for the rest of the client's data:
// closing with unread data resets the connection, and the client may
// lose the answer (RFC 9112, 9.6).
func (c *Conn) Linger() { c.lingers.Store(true) }

// Close closes the connection, in the background if it lingers.
func (c *Conn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		c.beginIO()
		c.Account.end()
		tcp, ok := c.Conn.(*net.TCPConn)
		if ok && c.lingers.Load() {
			c.Set(Idle)
			go c.linger(tcp)
			err = nil
			return
		}
		err = c.Conn.Close()
		c.table.remove(c)
	})
	return err
}

func (c *Conn) linger(tcp *net.TCPConn) {
	_ = tcp.CloseWrite()
	_ = tcp.SetReadDeadline(time.Now().Add(lingerTimeout)) //nolint:forbidigo // sockets use the system's time
	_, _ = io.CopyN(io.Discard, tcp, lingerBytes)
	_ = tcp.Close()
	c.table.remove(c)
}

// Refuse closes a connection before its handshake.
func (c *Conn) Refuse(reason Reason) {
	c.table.metrics.closed(reason)
	c.abort()
}

// giveWay closes the connection for another one.
func (c *Conn) giveWay(idle bool) {
	c.Account.end()
	if idle { // its client gets an end, not a failure
		_ = c.Conn.Close()
		return
	}
	c.abort()
}

// abort closes the connection at once and drops unsent data.
func (c *Conn) abort() {
	c.Account.end()
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
	c.table.remove(c)
}
