package fairness

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
)

// trusting returns the TLS settings for the installation.
func trusting(caFile, name string) (*tls.Config, error) {
	pool, err := client.Authorities(caFile)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: name}, err
}

// senders is how many requests a noisy sender has in flight.
const senders = 8

// fullRate posts the largest ordinary batches.
func fullRate(ctx context.Context, n *noisy) error {
	var serial atomic.Int64
	bodies := make([]*measure.Body, senders)
	for i := range bodies {
		bodies[i] = measure.NewBody(1000)
	}
	return repeat(ctx, senders, func(worker int) error {
		bodies[worker].Stamp(time.Now(), serial.Add(1000))
		return n.post(ctx, bodies[worker].Text, "")
	})
}

// sendNewErrors posts 1,000 new types of errors at a time.
func sendNewErrors(ctx context.Context, n *noisy) error { return n.sendErrors(ctx, 1000, noStack) }

// sendLargeStacks posts new errors with stacks of 100 KB.
func sendLargeStacks(ctx context.Context, n *noisy) error { return n.sendErrors(ctx, 100, largeStack) }

func (n *noisy) sendErrors(ctx context.Context, entries int, frames stack) error {
	var serial atomic.Int64
	return repeat(ctx, senders/2, func(int) error {
		return n.post(ctx, newErrors(entries, serial.Add(int64(entries)), frames), "")
	})
}

// sendMixed posts batches of everything.
func sendMixed(ctx context.Context, n *noisy) error {
	var serial atomic.Int64
	return repeat(ctx, senders, func(int) error { return n.post(ctx, mixed(serial.Add(mixedErrors)), "") })
}

// spreadProjects is how many projects share a noisy organization's errors.
const spreadProjects = 20

// makeProjects creates projects, each with a key.
func makeProjects(ctx context.Context, n *noisy) error {
	for i := range spreadProjects {
		project, err := n.api.CreateProject(ctx, n.AdminToken, n.Tenant.Organization, fmt.Sprint("spread ", i))
		if err != nil {
			return err
		}
		key, err := n.api.CreateAPIKey(ctx, n.AdminToken, project.ID, "prod", "spread")
		if err != nil {
			return err
		}
		n.keys = append(n.keys, key.Key)
	}
	return nil
}

// sendSpread posts new types of errors to each project in turn.
func sendSpread(ctx context.Context, n *noisy) error {
	var serial atomic.Int64
	return repeat(ctx, senders/2, func(int) error {
		number := serial.Add(1)
		return n.postBy(ctx, n.keys[number%spreadProjects], newErrors(1000, number*1000, noStack), "")
	})
}

// sendLongNames posts entries in ever new environments, and searches by them.
func sendLongNames(ctx context.Context, n *noisy) error {
	var serial atomic.Int64
	return repeat(ctx, senders, func(worker int) error {
		first := serial.Add(1000)
		if worker%2 == 0 {
			return n.get(ctx, "/logs?limit=1000&environment="+longName(first/2))
		}
		entries := make([]string, 1000)
		at := time.Now().UTC().Format(stampForm)
		for i := range entries {
			entries[i] = fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","environment":"%s","error":{"type":"Error"}}`, at, longName(first+int64(i)))
		}
		return n.post(ctx, batch(entries), "")
	})
}

// longName is a name of about 250 bytes.
func longName(number int64) string { return strings.Repeat("n", 240) + letters(number) }

// sendBroken posts bodies whose fault shows only after they
// are fully decompressed.
func sendBroken(ctx context.Context, n *noisy) error {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	body := measure.NewBody(1000)
	body.Stamp(time.Now(), 0)
	if _, err := writer.Write(body.Text); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	packed.Bytes()[packed.Len()-8] ^= 0xff // of the checksum
	return repeat(ctx, senders, func(int) error { return n.post(ctx, packed.Bytes(), "gzip") })
}

// sendBombs posts small bodies that are large once decompressed, with
// nothing valid in them.
func sendBombs(ctx context.Context, n *noisy) error {
	invalid := strings.TrimSuffix(strings.Repeat(`{},`, 127<<20/3-8), ",")
	var packed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	_, err := fmt.Fprintf(writer, `{"logs":[%s]}`, invalid)
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		return err
	}
	return repeat(ctx, senders/2, func(int) error { return n.post(ctx, packed.Bytes(), "gzip") })
}

// endless are the sizes of the endless bodies, in megabytes: together
// they fill half a gigabyte.
var endless = []int{127, 127, 127, 15, 15, 15, 15, 4, 4, 4, 1, 1, 1}

// sendEndless posts bodies of white space that empty blocks keep alive.
func sendEndless(ctx context.Context, n *noisy) error {
	parts, err := deflateEndless()
	if err != nil {
		return err
	}
	return repeat(ctx, len(endless), func(worker int) error { return n.sendOneEndless(ctx, parts, endless[worker]) })
}

func (n *noisy) sendOneEndless(ctx context.Context, parts endlessParts, megabytes int) error {
	reader, writer := io.Pipe()
	defer reader.Close()
	go func() { _ = writer.CloseWithError(parts.inflate(ctx, writer, megabytes)) }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.BaseURL+"/logs", reader)
	if err != nil {
		return err
	}
	r.Header = http.Header{"X-Api-Key": {n.Tenant.Key}, "Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}
	return n.send(ctx, n.http, r)
}

// endlessParts are pieces of deflated text. They are made once:
// repeated compression of half a gigabyte took the attacker more
// processor time than it cost the service.
type endlessParts struct{ head, spaces, empty []byte }

// gzipHeader is that of a file without a name.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

func deflateEndless() (parts endlessParts, err error) {
	head, err := deflated([]byte(`{"logs":[`))
	if err != nil {
		return parts, err
	}
	parts.head = append([]byte(gzipHeader), head...)
	if parts.spaces, err = deflated(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
		return parts, err
	}
	parts.empty, err = deflated(nil)
	return parts, err
}

// deflated returns compressed text that ends with a block, and that any
// other may follow.
func deflated(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		_, err = writer.Write(text)
	}
	if err == nil {
		err = writer.Flush()
	}
	return packed.Bytes(), err
}

// inflate writes a stream that decompresses to so many megabytes of
// white space, and then an empty block each second.
func (p endlessParts) inflate(ctx context.Context, out io.Writer, megabytes int) error {
	if _, err := out.Write(p.head); err != nil {
		return err
	}
	for range megabytes {
		if _, err := out.Write(p.spaces); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		if _, err := out.Write(p.empty); err != nil {
			return err
		}
		lifecycle.Pause(ctx, time.Second)
	}
	return ctx.Err()
}
