package fairness

import (
	"bytes"
	"context"
	"io"
	"net"

	"github.com/weirlog/weir/shared/httpapi/frames"
)

// Header blocks without a table (RFC 7541): GET and POST of https://weir/.
var (
	getRoot  = []byte("\x82\x87\x84\x41\x04weir")
	postRoot = []byte("\x83\x87\x84\x41\x04weir")
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

// A flood is what a connection sends without a pause: first once, then
// pieces by their number.
type flood struct {
	first []byte
	piece func(i uint32) []byte
}

var (
	settingsFlood = flood{nil, func(uint32) []byte { return frame(frames.Settings, 0, 0, nil) }}
	pingFlood     = flood{nil, func(uint32) []byte { return frame(frames.Ping, 0, 0, make([]byte, 8)) }}
	dataFlood     = flood{frame(frames.Headers, endHeaders, 1, postRoot), func(uint32) []byte { return frame(frames.Data, 0, 1, nil) }}
	resetFlood    = flood{nil, reset(getRoot)}
	blockFlood    = flood{nil, reset(append(bytes.Clone(getRoot), longField()...))}
	endlessFlood  = flood{frame(frames.Headers, endStream, 1, getRoot), func(uint32) []byte { return frame(frames.Continuation, 0, 1, nil) }}
)

// reset begins a stream with block, and resets it.
func reset(block []byte) func(i uint32) []byte {
	return func(i uint32) []byte {
		stream := 2*i + 1
		return append(frame(frames.Headers, endHeaders|endStream, stream, block), frame(frames.ResetStream, 0, stream, make([]byte, 4))...)
	}
}

// longField is a header field of 8,000 bytes.
func longField() []byte {
	return append([]byte("\x00\x01x\x7f\xc1\x3d"), bytes.Repeat([]byte("a"), 8000)...)
}

// sendFrames floods so many connections of another network, in turn with
// each of floods, and opens closed ones again. It has no key.
func sendFrames(connections int, floods ...flood) func(ctx context.Context, n *noisy) error {
	return func(ctx context.Context, n *noisy) error {
		return repeat(ctx, connections, func(worker int) error {
			conn, err := n.dialHTTP2(ctx)
			if err != nil {
				n.outcome.count("refused")
				return err
			}
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			n.outcome.count("opened")
			err = floods[worker%len(floods)].send(conn)
			n.outcome.count("closed")
			return err
		})
	}
}

// dialHTTP2 opens a connection of HTTP/2 from another network.
func (n *noisy) dialHTTP2(ctx context.Context) (net.Conn, error) {
	conn, err := n.browser.dial(ctx, network(0), "h2")
	if err != nil {
		return nil, err
	}
	_, err = conn.Write(append([]byte(frames.Preface), frame(frames.Settings, 0, 0, nil)...))
	return conn, err
}

// send sends until the connection ends.
func (f flood) send(to io.Writer) error {
	if _, err := to.Write(f.first); err != nil {
		return err
	}
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

// breakRules connects, sends what ends a connection with an error, in
// HTTP/2 and HTTP/1 in turn, and comes again at once.
func breakRules(ctx context.Context, n *noisy) error {
	faults := [...]struct {
		dial func(context.Context) (net.Conn, error)
		send []byte
	}{
		{n.dialHTTP2, frame(frames.Data, 0, 0, nil)},
		{func(ctx context.Context) (net.Conn, error) { return n.browser.dial(ctx, network(0)) }, []byte("garbage\r\n\r\n")},
	}
	return repeat(ctx, 32, func(worker int) error {
		fault := faults[worker%len(faults)]
		conn, err := fault.dial(ctx)
		if err != nil {
			n.outcome.count("closed")
			return err
		}
		defer conn.Close()
		n.outcome.count("opened")
		_, err = conn.Write(fault.send)
		return err
	})
}
