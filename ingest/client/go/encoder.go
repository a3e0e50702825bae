package weir

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// An encoder writes one entry. The error of its attributes is kept apart.
type encoder struct {
	buf    []byte
	redact func(groups []string, a slog.Attr) slog.Attr
	groups []string
	fault  error
}

var encoders = sync.Pool{New: func() any { return &encoder{buf: make([]byte, 0, 1024)} }}

// maxPooled is the largest buffer that is kept for another entry.
const maxPooled = 64 << 10

func (e *encoder) free() {
	if cap(e.buf) <= maxPooled {
		*e = encoder{buf: e.buf[:0], groups: e.groups[:0]}
		encoders.Put(e)
	}
}

// member writes the key of the next member of an object.
func (e *encoder) member(key string) {
	if e.buf[len(e.buf)-1] != '{' {
		e.buf = append(e.buf, ',')
	}
	e.buf = append(appendString(e.buf, key), ':')
}

func (e *encoder) open(group string) {
	e.member(group)
	e.buf = append(e.buf, '{')
	if e.redact != nil {
		e.groups = append(e.groups, group)
	}
}

func (e *encoder) close() {
	e.buf = append(e.buf, '}')
	if e.redact != nil {
		e.groups = e.groups[:len(e.groups)-1]
	}
}

// inside writes a group. Without members it is omitted.
func (e *encoder) inside(group string, members func()) {
	before := len(e.buf)
	e.open(group)
	members()
	empty := e.buf[len(e.buf)-1] == '{'
	e.close()
	if empty {
		e.buf = e.buf[:before]
	}
}

func (e *encoder) attr(a slog.Attr) {
	a.Value = a.Value.Resolve()
	if e.redact != nil && a.Value.Kind() != slog.KindGroup {
		a = e.redact(e.groups, a)
		a.Value = a.Value.Resolve()
	}
	switch {
	case a.Value.Kind() == slog.KindGroup:
		if a.Key == "" {
			e.attrs(a.Value.Group())
		} else {
			e.inside(a.Key, func() { e.attrs(a.Value.Group()) })
		}
	case a.Equal(slog.Attr{}) || e.isFault(a):
	default:
		e.member(a.Key)
		e.value(a.Value)
	}
}

func (e *encoder) attrs(attrs []slog.Attr) {
	for _, a := range attrs {
		e.attr(a)
	}
}

// isFault keeps the first error under one of the usual keys.
func (e *encoder) isFault(a slog.Attr) bool {
	if e.fault != nil || a.Value.Kind() != slog.KindAny || a.Key != "error" && a.Key != "err" {
		return false
	}
	err, ok := a.Value.Any().(error)
	if ok {
		e.fault = err
	}
	return ok
}

// object writes a map as an object.
func (e *encoder) object(values map[string]any) {
	e.buf = append(e.buf, '{')
	e.values(values)
	e.buf = append(e.buf, '}')
}

// values writes the members of a map in the order of its keys.
func (e *encoder) values(values map[string]any) {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		e.attr(slog.Any(key, values[key]))
	}
}

func (e *encoder) value(v slog.Value) {
	switch v.Kind() {
	case slog.KindString:
		e.buf = appendString(e.buf, v.String())
	case slog.KindInt64:
		e.buf = strconv.AppendInt(e.buf, v.Int64(), 10)
	case slog.KindUint64:
		e.buf = strconv.AppendUint(e.buf, v.Uint64(), 10)
	case slog.KindFloat64:
		e.buf = appendFloat(e.buf, v.Float64())
	case slog.KindBool:
		e.buf = strconv.AppendBool(e.buf, v.Bool())
	case slog.KindDuration:
		e.buf = strconv.AppendInt(e.buf, int64(v.Duration()), 10)
	case slog.KindTime:
		e.buf = append(v.Time().AppendFormat(append(e.buf, '"'), time.RFC3339Nano), '"')
	default:
		e.any(v.Any())
	}
}

// any writes what only encoding/json knows. What cannot be written, or
// panics, is told in its place: a log call never ends a program.
func (e *encoder) any(v any) {
	before := len(e.buf)
	defer func() {
		if p := recover(); p != nil {
			e.buf = appendString(e.buf[:before], fmt.Sprintf("!PANIC: %v", p))
		}
	}()
	err, isError := v.(error)
	if _, marshals := v.(json.Marshaler); isError && !marshals {
		e.buf = appendString(e.buf, err.Error())
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		e.buf = appendString(e.buf, "!ERROR: "+err.Error())
		return
	}
	e.buf = append(e.buf, text...)
}

// appendFloat writes what JSON has no number for as text.
func appendFloat(buf []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(strconv.AppendFloat(append(buf, '"'), f, 'g', -1, 64), '"')
	}
	return strconv.AppendFloat(buf, f, 'g', -1, 64)
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(buf []byte, s string) []byte {
	buf = append(buf, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		buf = append(buf, s[start:i]...)
		buf = appendEscaped(buf, c)
		i++
		start = i
	}
	return append(append(buf, s[start:]...), '"')
}

func appendEscaped(buf []byte, c byte) []byte {
	switch {
	case c >= utf8.RuneSelf:
		return append(buf, "\uFFFD"...)
	case c == '"' || c == '\\':
		return append(buf, '\\', c)
	case c == '\n':
		return append(buf, '\\', 'n')
	case c == '\t':
		return append(buf, '\\', 't')
	}
	return append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
