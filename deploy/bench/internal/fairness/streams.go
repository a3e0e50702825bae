package fairness

import (
	"bufio"
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
	"github.com/weirlog/weir/shared/lifecycle"
)

// leaveUnread requests large answers and never reads them.
func leaveUnread(ctx context.Context, n *noisy) error {
	return repeat(ctx, 6, func(int) error {
		conn, err := n.browser.dial(ctx, nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET /v1/logs?limit=1000 HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\n\r\n", n.browser.host, n.Tenant.Key); err != nil {
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
		a := n.get("/logs")
		a.header.Set("Accept", "application/x-ndjson")
		r, err := a.request(ctx)
		if err != nil {
			return err
		}
		answer, err := n.browser.Do(r)
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
func silence(networks int) func(ctx context.Context, n *noisy) error {
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
			conn, err := dialer.DialContext(ctx, "tcp", n.browser.host)
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
