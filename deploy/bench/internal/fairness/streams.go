package fairness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/httpapi/frames"
	"github.com/weirlog/weir/shared/lifecycle"
)

// leaveUnread leaves an answer unread while it fills the buffers of both ends.
func leaveUnread(ctx context.Context, n *noisy, answer *http.Response) {
	n.outcome.count(fmt.Sprint(answer.StatusCode))
	lifecycle.Pause(ctx, 5*time.Second)
}

// readSlowly reads a megabyte of an answer at once, then 16 KB a second.
func readSlowly(ctx context.Context, n *noisy, answer *http.Response) {
	const burst, perSecond = 1 << 20, 16 << 10
	if answer.StatusCode != http.StatusOK {
		n.outcome.read(answer)
		return
	}
	_, err := io.CopyN(io.Discard, answer.Body, burst)
	for err == nil && ctx.Err() == nil {
		lifecycle.Pause(ctx, time.Second)
		_, err = io.CopyN(io.Discard, answer.Body, perSecond)
	}
	switch {
	case ctx.Err() != nil:
		n.outcome.count("200")
	case errors.Is(err, io.EOF):
		n.outcome.count("200 whole")
	default:
		n.outcome.count("closed")
	}
}

// Sockets: how many are opened, if this process may, by how many goroutines.
const (
	maxSockets = 22_000
	openers    = 64
	openPause  = 12 * time.Millisecond // of each opener: at most 5,000 a second, or opening them takes more of the shared processors than the target
	spareFiles = 200                   // of this process, for all else
)

// silence opens sockets from so many networks, sends nothing on them,
// and replaces closed ones.
func silence(networks int) step {
	return func(ctx context.Context, n *noisy) error {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return fmt.Errorf("cannot read how many files may be open: %w", err)
		}
		var serial atomic.Int64
		free := make(chan struct{}, min(maxSockets, limit.Cur-spareFiles))
		return repeat(ctx, openers, func(int) error {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			dialer := &net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: network(int(serial.Add(1)) % networks)}}
			conn, err := dialer.DialContext(ctx, "tcp", n.browser.Host)
			if err != nil {
				<-free
				n.outcome.count("refused")
				return err
			}
			n.outcome.count("opened")
			go func() {
				defer func() { <-free }()
				n.listen(ctx, conn.(*net.TCPConn))
			}()
			lifecycle.Pause(ctx, openPause)
			return nil
		})
	}
}

// listen waits until the other end closes a silent connection.
func (n *noisy) listen(ctx context.Context, conn *net.TCPConn) {
	defer conn.Close()
	_ = conn.SetLinger(0) // no end keeps the closed connection's state
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, _ = conn.Read(make([]byte, 1))
	if ctx.Err() == nil {
		n.outcome.count("closed")
	}
}

// network returns a local address in its own client network.
func network(number int) net.IP {
	return net.IPv4(127, byte(1+number>>16&0x3f), byte(number>>8), byte(2+number%250))
}

// Header blocks without a table (RFC 7541): GET and POST of https://weir/, and
// a field of 8,000 bytes.
const (
	getRoot   = "\x82\x87\x84\x41\x04weir"
	postRoot  = "\x83\x87\x84\x41\x04weir"
	longField = "\x00\x01x\x7f\xc1\x3d"
)

// Flags of frames, and how many are sent at once.
const (
	endStream  = 0x1
	endHeaders = 0x4

	framesAtOnce = 100
)

func frame(kind frames.Type, flags byte, stream uint32, payload []byte) []byte {
	return frames.Append(nil, frames.Header{Type: kind, Flags: flags, Stream: stream}, payload)
}

// A flood is what is sent on a connection: first once, then without a pause
// pieces by their number. Without pieces it breaks a rule, and comes again.
type flood struct {
	protocols []string
	first     []byte
	piece     func(i uint32) []byte
}

// over2 is a flood on a connection of HTTP/2, which it opens first.
func over2(first []byte, piece func(i uint32) []byte) flood {
	opening := append([]byte(frames.Preface), frame(frames.Settings, 0, 0, nil)...)
	return flood{[]string{"h2"}, append(opening, first...), piece}
}

func always(kind frames.Type, stream uint32, payload ...byte) func(uint32) []byte {
	return func(uint32) []byte { return frame(kind, 0, stream, payload) }
}

var (
	settingsFlood = over2(nil, always(frames.Settings, 0))
	pingFlood     = over2(nil, always(frames.Ping, 0, make([]byte, 8)...))
	dataFlood     = over2(frame(frames.Headers, endHeaders, 1, []byte(postRoot)), always(frames.Data, 1))
	resetFlood    = over2(nil, reset([]byte(getRoot)))
	blockFlood    = over2(nil, reset(append([]byte(getRoot+longField), bytes.Repeat([]byte("a"), 8000)...)))
	endlessFlood  = over2(frame(frames.Headers, endStream, 1, []byte(getRoot)), always(frames.Continuation, 1))
	wrongFrame    = over2(frame(frames.Data, 0, 0, nil), nil)
	noRequest     = flood{nil, []byte("garbage\r\n\r\n"), nil}
)

// reset begins a stream with block, and resets it.
func reset(block []byte) func(i uint32) []byte {
	return func(i uint32) []byte {
		stream := 2*i + 1
		return append(frame(frames.Headers, endHeaders|endStream, stream, block), frame(frames.ResetStream, 0, stream, make([]byte, 4))...)
	}
}

// sends floods so many connections of another network, in turn with each of
// floods, and opens closed ones again. It has no key.
func sends(connections int, floods ...flood) step {
	return func(ctx context.Context, n *noisy) error {
		return repeat(ctx, connections, func(worker int) error {
			f := floods[worker%len(floods)]
			conn, err := n.dial(ctx, f)
			if err != nil && f.piece == nil {
				n.outcome.count("closed")
			} else if err != nil {
				n.outcome.count("refused")
			}
			if err != nil {
				return err
			}
			defer conn.Close()
			n.outcome.count("opened")
			if f.piece == nil {
				return nil
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			err = f.send(conn)
			n.outcome.count("closed")
			return err
		})
	}
}

// dial opens a connection from another network, and sends what comes first.
func (n *noisy) dial(ctx context.Context, f flood) (net.Conn, error) {
	conn, err := n.browser.Dial(ctx, network(0), f.protocols...)
	if err == nil {
		_, err = conn.Write(f.first)
	}
	return conn, err
}

// send sends pieces until the connection ends.
func (f flood) send(to io.Writer) error {
	var pieces []byte
	for i := uint32(0); ; {
		pieces = pieces[:0]
		for range framesAtOnce {
			pieces = append(pieces, f.piece(i)...)
			i++
		}
		if _, err := to.Write(pieces); err != nil {
			return err
		}
	}
}
