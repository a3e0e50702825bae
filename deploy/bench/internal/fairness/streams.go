package fairness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/httpapi/frames"
	"github.com/weirlog/weir/shared/lifecycle"
)

// leaveUnread requests large answers and never reads them.
func leaveUnread(ctx context.Context, n *noisy) error {
	return repeat(ctx, 6, func(int) error {
		conn, err := n.browser.Dial(ctx, nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET /v1/logs?limit=1000 HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\n\r\n", n.browser.Host, n.Tenant.Key); err != nil {
			return err
		}
		status, err := bufio.NewReaderSize(conn, 512).ReadString('\n')
		if err != nil {
			return err
		}
		if code := strings.Fields(status); len(code) > 1 {
			n.outcome.count(code[1])
		}
		lifecycle.Pause(ctx, 5*time.Second) // meanwhile the answer fills the buffers of both ends
		return nil
	})
}

// Readers of lines: how many bytes each reads at once, and then each second.
const (
	linesBurst     = 1 << 20
	linesPerSecond = 16 << 10
)

// readLinesSlowly requests all lines and reads them slowly.
func readLinesSlowly(ctx context.Context, n *noisy) error {
	return repeat(ctx, 8, func(int) error {
		a := inTurn(byKey, "GET /logs")(n, 0, 0)
		a.header.Set("Accept", "application/x-ndjson")
		answer, err := a.do(ctx, n)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			n.outcome.read(answer)
			lifecycle.Pause(ctx, obeyed)
			return nil
		}
		_, err = io.CopyN(io.Discard, answer.Body, linesBurst)
		for err == nil && ctx.Err() == nil {
			lifecycle.Pause(ctx, time.Second)
			_, err = io.CopyN(io.Discard, answer.Body, linesPerSecond)
		}
		switch {
		case ctx.Err() != nil:
			n.outcome.count("200")
		case errors.Is(err, io.EOF):
			n.outcome.count("200 whole")
		default:
			n.outcome.count("closed")
		}
		return nil
	})
}

// pageThroughYears reads page after page, from the newest and from the
// oldest on.
func pageThroughYears(ctx context.Context, n *noisy) error {
	cursors := make([]string, 8)
	return repeat(ctx, len(cursors), func(worker int) error {
		return n.page(ctx, "/logs?limit=1000&order="+[]string{"desc", "asc"}[worker%2], &cursors[worker])
	})
}

// readFromYearZero reads small pages from cursors before everything, forged
// and real.
func readFromYearZero(ctx context.Context, n *noisy) error {
	forged, err := json.Marshal(map[string]any{"s": -62167219200, "n": 0, "b": strings.Repeat("0", 32), "i": 0})
	if err != nil {
		return err
	}
	cursors := make([]string, 8)
	return repeat(ctx, len(cursors), func(worker int) error {
		if worker%2 == 0 {
			cursors[worker] = base64.RawURLEncoding.EncodeToString(forged)
			return n.page(ctx, "/logs?limit=1&order=asc", &cursors[worker])
		}
		return n.page(ctx, "/logs?limit=1&order=asc&q=answered", &cursors[worker])
	})
}

// page reads the cursor's page and moves the cursor on.
func (n *noisy) page(ctx context.Context, path string, cursor *string) error {
	if *cursor != "" {
		path += "&cursor=" + *cursor
	}
	answer, err := n.api.Call(ctx, client.Request{Method: http.MethodGet, Path: path, Header: map[string]string{"X-Api-Key": n.Tenant.Key}})
	if err != nil {
		return err
	}
	n.outcome.count(describe(answer.Status, answer.Body[:min(len(answer.Body), headBytes)], answer.Body[max(0, len(answer.Body)-headBytes):]))
	switch answer.Status {
	case http.StatusOK:
		var list client.List[json.RawMessage]
		err = json.Unmarshal(answer.Body, &list)
		*cursor = ""
		if list.NextCursor != nil {
			*cursor = *list.NextCursor
		}
	case http.StatusTooManyRequests:
		lifecycle.Pause(ctx, obeyed)
	}
	return err
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
func sendFrames(connections int, floods ...flood) step {
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
	conn, err := n.browser.Dial(ctx, network(0), "h2")
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
		{func(ctx context.Context) (net.Conn, error) { return n.browser.Dial(ctx, network(0)) }, []byte("garbage\r\n\r\n")},
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
