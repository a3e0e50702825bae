package connections

import (
	"container/list"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a connection. A reader has stallTimeout for each writeSize. The
// system buffers up to sendBuffer, and continues only when about a third of it
// is free: so 7 KB a second is fast enough.
const (
	stallTimeout  = 20 * time.Second
	writeSize     = 64 << 10
	sendBuffer    = 256 << 10 // the system counts its own overhead as well: one reader that takes nothing costs it 512 KB at most
	lingerTimeout = time.Second
	lingerBytes   = 16 << 20
)

// A Conn is a connection in a Table. Its writes have to be taken in
// time, whatever the deadline set on it.
type Conn struct {
	net.Conn
	table *Table

	network *network // these three belong to the table
	state   State
	place   *list.Element // nil: not in the table

	ahead   []byte // read ahead, and not yet given back by Read
	closing sync.Once
	lingers atomic.Bool
	pending atomic.Pointer[func()] // is called once, before the next Read, Write or Close

	mu    sync.Mutex
	limit time.Time // as set by SetWriteDeadline
	pace  time.Time // of the write under way
}

func newConn(raw net.Conn, t *Table) *Conn {
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	return &Conn{Conn: raw, table: t}
}

// Set sets what the connection does now.
func (c *Conn) Set(state State) { c.table.set(c, state) }

// Peek reads the first byte and keeps it for Read. A peer that
// vanishes later is noticed.
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

// BeforeIO has f called once, before the next Read, Write or Close.
func (c *Conn) BeforeIO(f func()) { c.pending.Store(&f) }

// AwaitsIO reports whether what BeforeIO was given has yet to be called.
func (c *Conn) AwaitsIO() bool { return c.pending.Load() != nil }

func (c *Conn) beginIO() {
	if c.pending.Load() != nil {
		if f := c.pending.Swap(nil); f != nil {
			(*f)()
		}
	}
}

// Read reads what was read ahead, then what comes.
func (c *Conn) Read(p []byte) (int, error) {
	c.beginIO()
	if len(c.ahead) > 0 && len(p) > 0 {
		n := copy(p, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Write writes p, and closes the connection where its reader takes too little.
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

// begin sets the deadline of a write: the pace, or what was set
// where that comes first.
func (c *Conn) begin(pace time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace = pace
	return c.Conn.SetWriteDeadline(earlier(c.pace, c.limit))
}

// end reports whether the pace was what bound the write.
func (c *Conn) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	paced := c.limit.IsZero() || c.pace.Before(c.limit)
	c.pace = time.Time{}
	return paced
}

// SetWriteDeadline bounds writes in addition to their pace.
func (c *Conn) SetWriteDeadline(limit time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = limit
	if c.pace.IsZero() {
		return nil // the next write sets it
	}
	return c.Conn.SetWriteDeadline(earlier(c.pace, limit))
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(limit time.Time) error {
	return errors.Join(c.SetReadDeadline(limit), c.SetWriteDeadline(limit))
}

func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Linger makes Close wait a little for what the client still
// sends: closing with unread data resets the connection, and the
// client may lose the answer (RFC 9112, 9.6).
func (c *Conn) Linger() { c.lingers.Store(true) }

// Close closes the connection, in its own time where it lingers.
func (c *Conn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		c.beginIO()
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

// Refuse closes a connection that has to wait for its handshake
// too long, or behind too many.
func (c *Conn) Refuse() {
	c.table.metrics.closed(reasonHandshake)
	c.abort()
}

// giveWay closes the connection for another one.
func (c *Conn) giveWay(idle bool) {
	if idle { // its client shall see an end, not a failure
		_ = c.Conn.Close()
		return
	}
	c.abort()
}

// abort closes the connection at once; what was not sent yet is dropped.
func (c *Conn) abort() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
	c.table.remove(c)
}
