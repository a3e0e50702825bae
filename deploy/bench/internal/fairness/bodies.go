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

// batch is a body of entries.
func batch(entries int, entry func(i int64) string) []byte {
	var body bytes.Buffer
	body.WriteString(`{"logs":[` + entry(0))
	for i := int64(1); i < int64(entries); i++ {
		body.WriteString("," + entry(i))
	}
	body.WriteString("]}")
	return body.Bytes()
}

// Sizes of stored entries: one may have 512 KB, with 100 KB of metadata.
const (
	largeContext = 499 << 10
	deepLevels   = 115 // with the levels around it at most 128
	deepContext  = 440 << 10
)

// large entries have 500 KB, of characters that JSON may escape.
func large(i int64) []byte { return withContext(i, `"`+strings.Repeat("<", largeContext)+`"`) }

// deep entries have an indented form that is a hundred times larger.
func deep(i int64) []byte {
	return withContext(i, nested(strings.TrimSuffix(strings.Repeat("0,", deepContext/2), ",")))
}

func nested(value string) string {
	return strings.Repeat("[", deepLevels) + value + strings.Repeat("]", deepLevels)
}

func withContext(body int64, value string) []byte {
	const entries = 10
	return batch(entries, func(i int64) string {
		return fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"large entry %d","error":{"context":{"value":%s}}}`, now(), body*entries+i, value)
	})
}

// oddYears are from the year 0 to the year 9999, so that each body spans all
// of time.
func oddYears(body int64) []byte {
	return batch(1000, func(i int64) string {
		return fmt.Sprintf(`{"timestamp":"%s-06-%02dT12:%02d:%02d.000Z","level":"info","message":"request %d answered"}`,
			[]string{"0000", "9999"}[i%2], 1+body%28, i/60%60, i%60, body*1000+i)
	})
}

// used is an entry in an environment of its own.
func used(body int64) []byte {
	return batch(1, func(int64) string {
		return fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"m","environment":"e%d"}`, now(), body)
	})
}

// similar are errors whose kinds and stacks differ in a word.
func similar(body int64) []byte { return newErrors(100, body*100, similarStack) }

// newErrors returns a batch of errors of new types, each with the stack of
// its own: a member of JSON, or nothing.
func newErrors(entries int, first int64, stack func(kind string) string) []byte {
	return batch(entries, func(i int64) string {
		kind := subject.Letters(first + i)
		return fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","error":{"type":"%sError"%s}}`, now(), kind, stack(kind))
	})
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
	at, names := now(), []string{}
	for i := range 1000 {
		names = append(names, fmt.Sprintf(`"%s%d":"ü"`, subject.Letters(first), i))
	}
	return batch(mixedErrors+3, func(i int64) string {
		kind := subject.Letters(first + i)
		switch i {
		case mixedErrors:
			return fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","error":{"type":"%sError"%s}}`, at, kind, largeStack(kind))
		case mixedErrors + 1:
			return fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","error":{"context":{"nested":%s}}}`, at, nested(""))
		case mixedErrors + 2:
			return fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"m","metadata":{%s}}`, at, strings.Join(names, ","))
		}
		return fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"Ошибка %s 🚫","error":{"type":"例外%s","message":"не найдено: %s"}}`, at, kind, kind, kind)
	})
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
	_, err := out.Write(p.head)
	for range megabytes {
		if err == nil {
			_, err = out.Write(p.spaces)
		}
	}
	for err == nil {
		_, err = out.Write(p.empty)
		time.Sleep(time.Second)
	}
	return err
}
