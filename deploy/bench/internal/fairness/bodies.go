package fairness

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
)

func now() string { return time.Now().UTC().Format(subject.StampForm) }

func batch(entries []string) []byte { return []byte(`{"logs":[` + strings.Join(entries, ",") + `]}`) }

// Sizes of stored entries: one may have 512 KB, with 100 KB of metadata.
const (
	perBatch     = 10
	largeEntries = 200
	largeContext = 499 << 10
	deepEntries  = 50
	deepLevels   = 115 // with the levels around it at most 128
	deepContext  = 440 << 10
)

// storeLarge stores entries of 500 KB, of characters that JSON may escape.
func storeLarge(ctx context.Context, n *noisy) error {
	return n.storeContexts(ctx, largeEntries, `"`+strings.Repeat("<", largeContext)+`"`)
}

// storeDeep stores entries whose indented form is a hundred times larger.
func storeDeep(ctx context.Context, n *noisy) error {
	return n.storeContexts(ctx, deepEntries,
		strings.Repeat("[", deepLevels)+strings.TrimSuffix(strings.Repeat("0,", deepContext/2), ",")+strings.Repeat("]", deepLevels))
}

func (n *noisy) storeContexts(ctx context.Context, entries int, value string) error {
	var bodies [][]byte
	for i := 0; i < entries; i += perBatch {
		all := make([]string, perBatch)
		for k := range all {
			all[k] = fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"large entry %d","error":{"context":{"value":%s}}}`, now(), i+k, value)
		}
		bodies = append(bodies, batch(all))
	}
	return n.store(ctx, bodies)
}

// storeOddYears stores batches from the year 0 to the year 9999, so
// that each spans all of time.
func storeOddYears(ctx context.Context, n *noisy) error {
	bodies := make([][]byte, 30)
	for i := range bodies {
		entries := make([]string, 1000)
		for k := range entries {
			year := []string{"0000", "9999"}[k%2]
			entries[k] = fmt.Sprintf(`{"timestamp":"%s-06-%02dT12:%02d:%02d.000Z","level":"info","message":"request %d answered"}`,
				year, 1+i%28, k/60%60, k%60, i*1000+k)
		}
		bodies[i] = batch(entries)
	}
	return n.store(ctx, bodies)
}

// newErrors returns a batch of errors of new types, each with the stack of
// its own: a member of JSON, or nothing.
func newErrors(entries int, first int64, stack func(kind string) string) []byte {
	var body bytes.Buffer
	body.WriteString(`{"logs":[`)
	for i := range int64(entries) {
		kind := subject.Letters(first + i)
		fmt.Fprintf(&body, `{"timestamp":"%s","level":"error","message":"m","error":{"type":"%sError"%s}},`, now(), kind, stack(kind))
	}
	body.Truncate(body.Len() - 1)
	body.WriteString("]}")
	return body.Bytes()
}

func noStack(string) string { return "" }

// anyKind stands for a kind in largeFrames, and is as long as most are.
const anyKind = "\x00\x00\x00\x00"

// largeFrames are a stack of about 100 KB. They are made once: an attack
// takes processor time from the watched organizations.
var largeFrames = sync.OnceValue(func() string {
	var frames strings.Builder
	frames.WriteString(`,"stack_trace":["at main (/srv/shop/src/main.js:1:7)"`)
	for i := int64(0); frames.Len() < 100<<10; i++ {
		fmt.Fprintf(&frames, `,"at %s.call%s (/srv/shop/src/%s/file.js:%d:7)"`, anyKind, subject.Letters(i), anyKind, i)
	}
	return frames.String() + "]"
})

func largeStack(kind string) string { return strings.ReplaceAll(largeFrames(), anyKind, kind) }

// similarStack has 60 frames, one of them the kind's own.
func similarStack(kind string) string {
	frames := fmt.Sprintf(`,"stack_trace":["at %s (/srv/shop/src/cart.js:1:7)"`, kind)
	for i := range int64(60) {
		frames += fmt.Sprintf(`,"at step%s (/srv/shop/src/%s.js:%d:7)"`, subject.Letters(i), subject.Letters(i), i+1)
	}
	return frames + "]"
}

// mixedErrors is the number of new kinds of errors in a request.
const mixedErrors = 300

// mixed returns a batch of under 1 MiB with a bit of everything: new
// kinds with types in other scripts, a large stack, deep nesting and an
// object of many names.
func mixed(first int64) []byte {
	at := now()
	list := make([]string, 0, mixedErrors+3)
	for i := range int64(mixedErrors) {
		kind := subject.Letters(first + i)
		list = append(list, fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"Ошибка %s 🚫","error":{"type":"例外%s","message":"не найдено: %s"}}`,
			at, kind, kind, kind))
	}
	kind := subject.Letters(first)
	nested := strings.Repeat("[", deepLevels) + strings.Repeat("]", deepLevels)
	var names strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&names, `,"%s%d":"ü"`, kind, i)
	}
	return batch(append(list,
		fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","error":{"type":"%sError"%s}}`, at, kind, largeStack(kind)),
		fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","error":{"context":{"nested":%s}}}`, at, nested),
		fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"m","metadata":{%s}}`, at, names.String()[1:])))
}

// packBroken makes a body whose fault shows only once it is unpacked.
func packBroken(_ context.Context, n *noisy) error {
	body := subject.NewBody(1000)
	body.Stamp(time.Now(), 0)
	n.packed = gzipped(string(body.Text))
	n.packed[len(n.packed)-8] ^= 0xff // of the checksum
	return nil
}

// packBomb makes a small body that is large once unpacked, with nothing
// valid in it.
func packBomb(_ context.Context, n *noisy) error {
	n.packed = gzipped(`{"logs":[` + strings.TrimSuffix(strings.Repeat(`{},`, 127<<20/3-8), ",") + `]}`)
	return nil
}

func gzipped(text string) []byte {
	var to bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&to, gzip.BestCompression) // neither this nor a buffer fails
	_, _ = io.WriteString(writer, text)
	_ = writer.Close()
	return to.Bytes()
}

// endlessParts are pieces of deflated text. They are made once: to
// compress half a gigabyte again and again took the attacker more
// processor time than it cost the service.
type endlessParts struct{ head, spaces, empty []byte }

func packEndless(_ context.Context, n *noisy) error {
	const header = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" // of gzip, for a file without a name
	n.endless = endlessParts{append([]byte(header), deflated(`{"logs":[`)...), deflated(strings.Repeat(" ", 1<<20)), deflated("")}
	return nil
}

// deflated ends with a block that any other may follow.
func deflated(text string) []byte {
	var to bytes.Buffer
	writer, _ := flate.NewWriter(&to, flate.BestCompression) // neither this nor a buffer fails
	_, _ = io.WriteString(writer, text)
	_ = writer.Flush()
	return to.Bytes()
}

// inflate writes a stream that unpacks to so many megabytes of white space,
// and then an empty block each second.
func (p endlessParts) inflate(out io.Writer, megabytes int) error {
	if _, err := out.Write(p.head); err != nil {
		return err
	}
	for range megabytes {
		if _, err := out.Write(p.spaces); err != nil {
			return err
		}
	}
	for {
		if _, err := out.Write(p.empty); err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
}
