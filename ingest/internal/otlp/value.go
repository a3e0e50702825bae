package otlp

import (
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirlog/weir/ingest"
)

// The kinds of an AnyValue, which are its fields.
const (
	stringValue protowire.Number = 1 + iota
	boolValue
	intValue
	doubleValue
	arrayValue
	kvlistValue
	bytesValue
)

// maxDepth is how deep values may nest.
const maxDepth = 64

var errDepth = errors.New("its values nest more than " + strconv.Itoa(maxDepth) + " levels deep")

// textOf returns the text of an AnyValue that is one; nil: an empty one.
func textOf(value []byte) (text []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(value)
	if n < 0 || number != stringValue || kind != protowire.BytesType {
		return nil, false
	}
	text, after := protowire.ConsumeBytes(value[n:])
	if after < 0 || n+after != len(value) {
		return nil, false
	}
	if len(text) == 0 {
		return nil, true
	}
	return text, true
}

// value writes an AnyValue.
func (t *Translator) value(value []byte, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	t.flushFull()
	m := Read(value)
	for m.Next() { // the last of them counts, whose values stay
	}
	if m.Err() != nil {
		return m.Err()
	}
	switch m.Number {
	case stringValue:
		t.text(m.Bytes)
	case boolValue:
		t.out = strconv.AppendBool(t.out, m.Value != 0)
	case intValue:
		t.out = strconv.AppendInt(t.out, int64(m.Value), 10) //nolint:gosec // two's complement by the format
	case doubleValue:
		t.double(math.Float64frombits(m.Value))
	case arrayValue:
		return t.array(m.Bytes, depth)
	case kvlistValue:
		return t.kvlist(m.Bytes, depth)
	case bytesValue:
		t.base64(m.Bytes)
	default:
		t.write("null")
	}
	return nil
}

// base64 writes bytes as a string, in pieces that need no padding.
func (t *Translator) base64(of []byte) {
	t.write(`"`)
	for piece := range slices.Chunk(of, 3<<12) {
		t.out = base64.StdEncoding.AppendEncode(t.out, piece)
		t.flushFull()
	}
	t.write(`"`)
}

func (t *Translator) array(text []byte, depth int) error {
	open := "["
	err := Repeated(text, 1, func(item []byte) error {
		t.write(open)
		open = ","
		return t.value(item, depth+1)
	})
	if open == "[" {
		t.write(open)
	}
	t.write("]")
	return err
}

func (t *Translator) kvlist(text []byte, depth int) error {
	o := object{t: t, depth: depth}
	err := Repeated(text, 1, func(member []byte) error {
		a, err := readAttribute(member)
		if err != nil {
			return err
		}
		return o.attribute(a)
	})
	o.end()
	return err
}

// double writes a number as encoding/json does. JSON has no infinite ones.
func (t *Translator) double(f float64) {
	format := byte('f')
	switch abs := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		t.text(strconv.AppendFloat(nil, f, 'g', -1, 64))
		return
	case abs != 0 && (abs < 1e-6 || abs >= 1e21):
		format = 'e'
	}
	t.out = strconv.AppendFloat(t.out, f, format, -1, 64)
}

// An object writes the members of one.
type object struct {
	t     *Translator
	depth int
	begun bool
}

func (o *object) attribute(a attribute) error {
	o.begin()
	o.t.text(a.name)
	o.t.write(":")
	return o.t.value(a.value, o.depth+1)
}

func (o *object) name(name string) {
	o.begin()
	o.t.write(`"`)
	o.t.write(name)
	o.t.write(`":`)
}

func (o *object) begin() {
	if o.begun {
		o.t.write(",")
		return
	}
	o.begun = true
	o.t.write("{")
}

func (o *object) end() {
	if !o.begun {
		o.t.write("{")
	}
	o.t.write("}")
}

// flushed is how much is written at once.
const flushed = 32 << 10

// write writes what the next text or value, which flushes, has between itself and the one before it.
func (t *Translator) write(text string) { t.out = append(t.out, text...) }

func (t *Translator) flushFull() {
	if len(t.out) >= flushed {
		t.flush()
	}
}

// flush writes, until a write fails.
func (t *Translator) flush() {
	if t.failed == nil {
		_, t.failed = t.to.Write(t.out)
	}
	t.out = t.out[:0]
}

// text writes a string.
func (t *Translator) text(s []byte) {
	if len(s) < flushed/2 && ingest.PlainPrefix(s) == len(s) {
		t.out = append(append(append(t.out, '"'), s...), '"')
		t.flushFull()
		return
	}
	t.write(`"`)
	t.escaped(s)
	t.write(`"`)
}

// escaped writes the inside of a string. What is not UTF-8 becomes U+FFFD.
func (t *Translator) escaped(s []byte) {
	from := 0
	for i := 0; i < len(s); {
		if i += ingest.PlainPrefix(s[i:]); i == len(s) {
			break
		}
		c, size, instead := s[i], 1, ""
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRune(s[i:]); r == utf8.RuneError && size <= 1 {
				instead = "\ufffd"
			}
		} else {
			instead = escapes[c]
		}
		if instead != "" {
			t.plain(s[from:i])
			t.write(instead)
			from = i + size
		}
		i += size
	}
	t.plain(s[from:])
}

func (t *Translator) plain(s []byte) {
	if len(t.out)+len(s) > flushed {
		t.flush()
	}
	if len(s) <= flushed {
		t.out = append(t.out, s...)
	} else if t.failed == nil {
		_, t.failed = t.to.Write(s)
	}
}

// escapes are those of characters that a string can't have as they are.
var escapes = func() (texts ['\\' + 1]string) {
	for c := range ' ' {
		texts[c] = `\u00` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15])
	}
	texts['\n'], texts['\r'], texts['\t'], texts['"'], texts['\\'] = `\n`, `\r`, `\t`, `\"`, `\\`
	return texts
}()

// inText is a writer into the inside of a string.
type inText struct{ *Translator }

func (w inText) Write(text []byte) (int, error) {
	w.escaped(text)
	return len(text), w.failed
}
