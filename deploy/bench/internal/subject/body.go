package subject

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The measured batch: 100 entries in 48 KB, every tenth with an error
// and its stack.
const (
	EntriesPerBatch = 100
	ErrorEvery      = 10
)

// StampForm is that of entries' timestamps.
const StampForm = "2006-01-02T15:04:05.000Z"

// serial stands where entries have their numbers, which make batches differ.
const serial = "##########"

// A Body is a batch whose entries can be stamped in place. It is for
// one sender at a time.
type Body struct {
	Text    []byte
	stamps  []int // offsets of the timestamps
	serials []int // offsets of the serial numbers
}

// NewBody returns a batch of a service's entries; errors of the same
// kind are in one group.
func NewBody(entries int) *Body {
	var text bytes.Buffer
	text.WriteString(`{"logs":[`)
	for i := range entries {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(entryText(i))
	}
	text.WriteString(`]}`)
	b := &Body{Text: text.Bytes()}
	b.stamps, b.serials = positions(b.Text, StampForm), positions(b.Text, serial)
	return b
}

func positions(text []byte, mark string) (at []int) {
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(mark))
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(mark)
	}
}

// entryText returns one entry of about 484 bytes on average, with marks
// for the stamps.
func entryText(i int) string {
	failed := i%ErrorEvery == ErrorEvery-1
	level := []string{"info", "debug", "info", "warn"}[i%4]
	rest := ""
	if failed {
		level = "error"
		rest = fmt.Sprintf(`,"error":{"type":"TimeoutError%d","message":"upstream did not answer in time for order %s","stack_trace":[`+
			`"at Client.call (/srv/shop/src/upstream/client.js:%d:17)","at Prices.load (/srv/shop/src/prices.js:42:11)",`+
			`"at Cart.total (/srv/shop/src/cart.js:118:9)","at checkout (/srv/shop/src/checkout.js:71:20)"]}`, i/ErrorEvery%5, serial, 80+i%7)
	}
	return fmt.Sprintf(`{"timestamp":"%s","level":"%s","message":"request %s to /api/v2/orders/%d/items answered in %d ms by upstream pool %d",`+
		`"environment":"prod","metadata":{"request_id":"%s-%04x","host":"web-%02d.eu-1.example","service":"storefront","user":"usr_%06d","dc":"eu-1","status":%d,`+
		`"bytes":%d,"route":"/api/v2/orders/{order}/items","agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML) Chrome/130.0.6723"}%s}`,
		StampForm, level, serial, 1000+i*37, 3+i%90, i%8, serial, i*257, i%24, i*9973%1000000, 200+i%5, 900+i*13, rest)
}

// Stamp gives every entry the time and its own number, from number on.
func (b *Body) Stamp(at time.Time, number int64) {
	now := at.UTC().AppendFormat(make([]byte, 0, len(StampForm)), StampForm)
	for _, position := range b.stamps {
		copy(b.Text[position:], now)
	}
	for i, position := range b.serials {
		digits := strconv.AppendInt(make([]byte, 0, 20), 1_000_000_000+(number+int64(i))%9_000_000_000, 10)
		copy(b.Text[position:position+len(serial)], digits)
	}
}

// StampOf reads an entry's stamped time, in Unix milliseconds; 0 without one.
func StampOf(entry string) int64 {
	_, rest, _ := strings.Cut(entry, `"timestamp":"`)
	if len(rest) < len(StampForm) {
		return 0
	}
	at, err := time.Parse(StampForm, rest[:len(StampForm)])
	if err != nil {
		return 0
	}
	return at.UnixMilli()
}

// Letters writes a number without digits, which a fingerprint
// would take for a counter.
func Letters(number int64) string {
	text := make([]byte, 0, 14)
	for ; number > 0 || len(text) < 4; number /= 26 {
		text = append(text, byte('a'+number%26))
	}
	return string(text)
}
