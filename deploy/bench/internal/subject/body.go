package subject

import (
	"strings"
	"time"

	"github.com/weirlog/weir/shared/measure/entries"
)

// EntriesPerBatch is the size of the measured batch.
const EntriesPerBatch = 100

// StampForm is that of entries' timestamps.
const StampForm = entries.StampForm

// A Body is a batch that is refilled for each post, in its own memory. It
// is for one sender at a time.
type Body struct {
	Text   []byte
	Errors int64 // entries with an error, one at least

	entries int
	from    *entries.Generator
}

// NewBody returns a batch; a seed of its own has entries of its own.
func NewBody(size int, seed uint64) *Body {
	b := &Body{entries: size, from: entries.New(seed)}
	b.Fill(time.Now())
	return b
}

// Fill makes new entries of one time.
func (b *Body) Fill(at time.Time) {
	before := b.from.Errors
	b.Text = b.from.AppendBody(b.Text[:0], b.entries, at, 0)
	b.Errors = int64(b.from.Errors - before)
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
