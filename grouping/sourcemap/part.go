package sourcemap

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"

	"github.com/weirlog/weir/shared/compression"
)

// Bounds of a part.
const (
	partSegments = 4096
	partTexts    = 64 << 10  // bytes of names and sources
	maxPart      = 256 << 10 // bytes, unpacked: no part has more
)

// A Part is some segments after another, with the sources and names
// that they use. It is read without the rest.
type Part struct {
	Line, Column int32 // where it begins in the script, from 0
	Data         []byte
}

// writer makes parts of segments.
type writer struct {
	parts    []Part
	segments int
	last     position // where the last segment begins

	first   position // of the part that is being made
	count   int
	before  segment
	body    []byte
	sources table
	names   table
}

// table is the texts that a part uses, in the order of use.
type table struct {
	known map[int]uint64 // numbers in the part, by those in the map; bounded by the part's segments
	begin int            // of the numbers of a section's map
	texts []string
	bytes int
}

// number is that of a text in the part, from 1; 0 of none.
func (t *table) number(of int32, text func() string) uint64 {
	if of < 0 {
		return 0
	}
	key := t.begin + int(of)
	n, ok := t.known[key]
	if !ok {
		if t.known == nil {
			t.known = map[int]uint64{}
		}
		t.texts = append(t.texts, text())
		t.bytes += len(t.texts[len(t.texts)-1])
		n = uint64(len(t.texts))
		t.known[key] = n
	}
	return n
}

func (t *table) reset() { *t = table{begin: t.begin} }

func (t *table) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(t.texts)))
	for _, text := range t.texts {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	return dst
}

// add adds the segments of a map that begins at a place. They must be
// behind those of the maps before.
func (w *writer) add(d document, from position) error {
	text := d.mappings
	if len(text) < 2 || text[0] != '"' {
		return fault("The map has no mappings.")
	}
	if text = text[1 : len(text)-1]; bytes.IndexByte(text, '\\') >= 0 { // some writers escape "/"
		text = []byte(unquote(d.mappings))
	}
	root := unquote(d.sourceRoot)
	m := mappings{text: text, from: from, sources: len(d.sources), names: len(d.names)}
	defer func() {
		w.sources.begin += len(d.sources)
		w.names.begin += len(d.names)
	}()
	return m.each(func(s segment) error {
		if w.segments++; w.segments > MaxSegments {
			return fault("The map has more than %d segments.", MaxSegments)
		}
		if s.at.before(w.last) {
			return fault("A section begins before the end of the one before, at line %d.", s.at.line+1)
		}
		w.write(s, w.sources.number(s.source, func() string { return sourceName(root, unquote(d.sources[s.source])) }),
			w.names.number(s.name, func() string { return clip(unquote(d.names[s.name])) }))
		return nil
	})
}

func (w *writer) write(s segment, source, name uint64) {
	if w.count == 0 {
		w.first, w.before = s.at, segment{at: position{line: s.at.line}}
	}
	b := w.before
	w.body = binary.AppendUvarint(w.body, uint64(s.at.line-b.at.line)) //nolint:gosec // segments are in order
	if s.at.line != b.at.line {
		b.at.column = 0
	}
	w.body = binary.AppendUvarint(w.body, uint64(s.at.column-b.at.column)) //nolint:gosec // segments are in order
	w.body = binary.AppendUvarint(w.body, source)
	if source > 0 {
		w.body = binary.AppendVarint(w.body, int64(s.line)-int64(b.line))
		w.body = binary.AppendVarint(w.body, int64(s.column)-int64(b.column))
		w.body = binary.AppendUvarint(w.body, name)
		b.line, b.column = s.line, s.column
	}
	b.at = s.at
	w.before, w.last = b, s.at
	if w.count++; w.count == partSegments || w.sources.bytes+w.names.bytes >= partTexts {
		w.flush()
	}
}

var packer, codec = compression.NewPacker(), compression.New(maxPart)

// flush ends the part that is being made.
func (w *writer) flush() {
	if w.count == 0 {
		return
	}
	text := append(w.names.append(w.sources.append(nil)), w.body...)
	w.parts = append(w.parts, Part{w.first.line, w.first.column, packer.Pack(text)})
	w.count, w.body = 0, w.body[:0]
	w.sources.reset()
	w.names.reset()
}

// An Original is where what begins at a place of a script was written.
type Original struct {
	Source       string // empty: nothing is known of the place
	Name         string // of what stands there, such as the function that is called; empty: unknown
	Line, Column int    // from 1
}

// Find finds what the places, from 1 and sorted, were written as in
// the part where each begins.
func Find(data []byte, line int32, places []Place) ([]Original, error) {
	text, err := codec.Unpack(data, nil)
	if err != nil {
		return nil, errBroken
	}
	r := &partReader{text: text}
	sources, names := r.texts(), r.texts()
	found := make([]Original, len(places))
	at, s := 0, segment{at: position{line: line}}
	var before Original
	beforeLine := int32(-1)
	for at < len(places) {
		var of Original
		more := r.more()
		if more {
			of = r.segment(&s, sources, names)
		}
		for at < len(places) && (!more || places[at].position().before(s.at)) {
			if places[at].position().line == beforeLine {
				found[at] = before
			}
			at++
		}
		if !more {
			break
		}
		before, beforeLine = of, s.at.line
	}
	if r.broken {
		return nil, errBroken
	}
	return found, nil
}

// Place is one in a script, from 1.
type Place struct{ Line, Column int }

// Compare is the order of places.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(p.Line, other.Line), cmp.Compare(p.Column, other.Column))
}

// FromZero is the line and the column of p, from 0, as parts have them.
func (p Place) FromZero() [2]int32 { at := p.position(); return [2]int32{at.line, at.column} }

func (p Place) position() position {
	return position{int32(min(max(p.Line-1, 0), maxNumber)), int32(min(max(p.Column-1, 0), maxNumber))} //nolint:gosec // bounded
}

var errBroken = errors.New("a part of a source map is broken")

// partReader reads an unpacked part. After a fault it reads nothing more.
type partReader struct {
	text   []byte
	broken bool
}

func (r *partReader) more() bool { return len(r.text) > 0 && !r.broken }

func (r *partReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.text)
	if n <= 0 {
		r.broken, r.text = true, nil
		return 0
	}
	r.text = r.text[n:]
	return v
}

func (r *partReader) varint() int32 {
	v, n := binary.Varint(r.text)
	if n <= 0 {
		r.broken, r.text = true, nil
		return 0
	}
	r.text = r.text[n:]
	return int32(v) //nolint:gosec // differences of numbers of 31 bits
}

func (r *partReader) texts() []string {
	n := r.uvarint()
	if n > partSegments {
		r.broken, r.text = true, nil
		return nil
	}
	texts := make([]string, n)
	for i := range texts {
		size := r.uvarint()
		if size > uint64(len(r.text)) {
			r.broken, r.text = true, nil
			return nil
		}
		texts[i], r.text = string(r.text[:size]), r.text[size:]
	}
	return texts
}

// segment reads one segment after another, s, and where it was written.
func (r *partReader) segment(s *segment, sources, names []string) (of Original) {
	if lines := r.uvarint(); lines > 0 {
		s.at.line, s.at.column = s.at.line+int32(lines), 0 //nolint:gosec // as written
	}
	s.at.column += int32(r.uvarint()) //nolint:gosec // as written
	source := r.uvarint()
	if source == 0 {
		return of
	}
	s.line, s.column = s.line+r.varint(), s.column+r.varint()
	name := r.uvarint()
	if source > uint64(len(sources)) || name > uint64(len(names)) {
		r.broken, r.text = true, nil
		return of
	}
	if sources[source-1] == "" {
		return of
	}
	of = Original{Source: sources[source-1], Line: int(s.line) + 1, Column: int(s.column) + 1}
	if name > 0 {
		of.Name = names[name-1]
	}
	return of
}
