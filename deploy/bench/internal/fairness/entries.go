package fairness

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// stampForm is the form of the timestamps of entries.
const stampForm = "2006-01-02T15:04:05.000Z"

// plain is a small entry.
func plain(at string, number int) string {
	return fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"request %d answered"}`, at, number)
}

// letters writes a number without digits, which a fingerprint
// would take for a counter.
func letters(number int64) string {
	text := make([]byte, 0, 14)
	for ; number > 0 || len(text) < 4; number /= 26 {
		text = append(text, byte('a'+number%26))
	}
	return string(text)
}

// Sizes of stored entries: one may have 512 KB, with 100 KB of metadata.
const (
	largeEntries  = 200
	largePerBatch = 10
	largeContext  = 499 << 10
	deepEntries   = 50
	deepLevels    = 115 // with the levels around it at most 128
	deepContext   = 440 << 10
)

// storeLarge stores 200 entries of 500 KB, of characters that JSON may escape.
func storeLarge(ctx context.Context, n *noisy) error {
	fill := strings.Repeat("<", largeContext)
	bodies := make([][]byte, 0, largeEntries/largePerBatch)
	for range largeEntries / largePerBatch {
		entries := make([]string, largePerBatch)
		for i := range entries {
			entries[i] = fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"large entry %d","error":{"context":{"fill":"%s"}}}`,
				time.Now().UTC().Format(stampForm), i, fill)
		}
		bodies = append(bodies, batch(entries))
	}
	return n.store(ctx, bodies)
}

// storeDeep stores entries whose indented form is a hundred times larger.
func storeDeep(ctx context.Context, n *noisy) error {
	nested := strings.Repeat("[", deepLevels) + strings.TrimSuffix(strings.Repeat("0,", deepContext/2), ",") + strings.Repeat("]", deepLevels)
	var bodies [][]byte
	for i := 0; i < deepEntries; i += largePerBatch {
		entries := make([]string, largePerBatch)
		for k := range entries {
			entries[k] = fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"deep entry %d","error":{"context":{"nested":%s}}}`,
				time.Now().UTC().Format(stampForm), i+k, nested)
		}
		bodies = append(bodies, batch(entries))
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
			entries[k] = plain(fmt.Sprintf("%s-06-%02dT12:%02d:%02d.000Z", year, 1+i%28, k/60%60, k%60), i*1000+k)
		}
		bodies[i] = batch(entries)
	}
	return n.store(ctx, bodies)
}

// A stack writes a member with the frames of a kind of error.
type stack func(to *bytes.Buffer, kind string)

// newErrors returns a batch of errors of new types, each with its own stack.
func newErrors(entries int, first int64, frames stack) []byte {
	var body bytes.Buffer
	at := time.Now().UTC().Format(stampForm)
	for i := range int64(entries) {
		kind := letters(first + i)
		fmt.Fprintf(&body, `%s{"timestamp":"%s","level":"error","message":"m","error":{"type":"%sError"`, separator(i), at, kind)
		frames(&body, kind)
		body.WriteString("}}")
	}
	body.WriteString("]}")
	return body.Bytes()
}

// separator returns what precedes the entry of a number.
func separator(i int64) string {
	if i == 0 {
		return `{"logs":[`
	}
	return ","
}

func noStack(*bytes.Buffer, string) {}

// largeFrames are the parts of a stack of about 100 KB between which
// its kind is inserted. They are made once: an attack takes processor
// time from the watched organizations.
var largeFrames = sync.OnceValue(func() []string {
	const kind = "\x00\x00\x00\x00" // as long as most are
	text := `,"stack_trace":["at main (/srv/shop/src/main.js:1:7)"`
	var frames strings.Builder
	for i := int64(0); frames.Len() < 100<<10; i++ {
		fmt.Fprintf(&frames, `,"at %s.call%s (/srv/shop/src/%s/file.js:%d:7)"`, kind, letters(i), kind, i)
	}
	return strings.Split(text+frames.String()+"]", kind)
})

// largeStack writes a stack of about 100 KB.
func largeStack(to *bytes.Buffer, kind string) {
	for i, part := range largeFrames() {
		if i > 0 {
			to.WriteString(kind)
		}
		to.WriteString(part)
	}
}

// mixedErrors is the number of new kinds of errors in a request.
const mixedErrors = 300

// mixed returns a batch of under 1 MiB with a bit of everything: new
// kinds with types in other scripts, a large stack, deep nesting and an
// object of many names.
func mixed(first int64) []byte {
	at := time.Now().UTC().Format(stampForm)
	list := make([]string, 0, mixedErrors+3)
	for i := range int64(mixedErrors) {
		kind := letters(first + i)
		list = append(list, fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"Ошибка %s 🚫","error":{"type":"例外%s","message":"не найдено: %s"}}`,
			at, kind, kind, kind))
	}
	kind := letters(first)
	var large bytes.Buffer
	largeStack(&large, kind)
	nested := strings.Repeat("[", deepLevels) + strings.Repeat("]", deepLevels)
	var names strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&names, `,"%s%d":"ü"`, kind, i)
	}
	return batch(append(list,
		fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","error":{"type":"%sError"%s}}`, at, kind, large.String()),
		fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","error":{"context":{"nested":%s}}}`, at, nested),
		fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"m","metadata":{%s}}`, at, names.String()[1:])))
}
