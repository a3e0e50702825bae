package fairness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// multiplexed returns a client that sends requests as streams
// of few connections.
func (n *noisy) multiplexed() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: n.tls, ForceAttemptHTTP2: true}, CheckRedirect: n.http.CheckRedirect}
}

// sendTiny posts single entries, each as a request that is remembered
// for a day and in its own environment.
func sendTiny(ctx context.Context, n *noisy) error {
	var serial atomic.Int64
	by := n.multiplexed()
	return repeat(ctx, 64, func(int) error {
		number := serial.Add(1)
		entry := fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","environment":"e%d","error":{"type":"%sError"}}`,
			time.Now().UTC().Format(stampForm), number, letters(number))
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.BaseURL+"/logs", strings.NewReader(string(batch([]string{entry}))))
		if err != nil {
			return err
		}
		r.Header = http.Header{"X-Api-Key": {n.Tenant.Key}, "Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprint(number, strings.Repeat("k", 200))}}
		return n.send(ctx, by, r)
	})
}

// Slow streams: on how many connections, and how many on each.
const (
	slowConnections = 8
	slowStreams     = 100
)

// sendSlowStreams posts bodies that hardly arrive.
func sendSlowStreams(ctx context.Context, n *noisy) error {
	clients := make([]*http.Client, slowConnections)
	for i := range clients {
		clients[i] = n.multiplexed()
	}
	return repeat(ctx, slowConnections*slowStreams, func(worker int) error {
		reader, writer := io.Pipe()
		defer reader.Close()
		go func() { _ = writer.CloseWithError(dribble(ctx, writer)) }()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.BaseURL+"/logs", reader)
		if err != nil {
			return err
		}
		r.Header = http.Header{"X-Api-Key": {n.Tenant.Key}, "Content-Type": {"application/json"}}
		return n.send(ctx, clients[worker%slowConnections], r)
	})
}

// dribble writes a body, a byte a second.
func dribble(ctx context.Context, out io.Writer) error {
	for text := `{"logs":[` + strings.Repeat(" ", 1<<10); text != "" && ctx.Err() == nil; text = text[1:] {
		if _, err := io.WriteString(out, text[:1]); err != nil {
			return err
		}
		lifecycle.Pause(ctx, time.Second)
	}
	return ctx.Err()
}
