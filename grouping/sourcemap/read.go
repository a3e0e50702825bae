package sourcemap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a map. They bound the memory that reading takes: beside the text
// 24 bytes for each source and name, and the parts, which are smaller.
const (
	MaxText     = 32 << 20 // bytes
	MaxSegments = 8_000_000
	maxSources  = 50_000
	maxNames    = 500_000
	maxSections = 10_000
)

// A Fault is what is wrong with a map.
type Fault struct{ Detail string }

func (f Fault) Error() string { return f.Detail }

func fault(format string, args ...any) error { return Fault{fmt.Sprintf(format, args...)} }

// A Map is a source map in parts, sorted by where they begin.
type Map struct {
	DebugID  string // empty: it has none
	Parts    []Part
	Segments int
}

// Read reads a map.
func Read(text []byte) (*Map, error) {
	if len(text) > MaxText {
		return nil, fault("The map has more than %d bytes.", MaxText)
	}
	if bytes.HasPrefix(text, []byte(")]}'")) { // against scripts that include it
		_, text, _ = bytes.Cut(text, []byte{'\n'})
	}
	top, err := readDocument(text)
	if err != nil {
		return nil, err
	}
	w := &writer{}
	if top.sections == nil {
		err = w.add(top, position{})
	} else {
		err = w.addSections(top.sections)
	}
	if err != nil {
		return nil, err
	}
	w.flush()
	if w.segments == 0 {
		return nil, fault("The map maps nothing: its mappings are empty.")
	}
	return &Map{DebugID: DebugID(top.debugID), Parts: w.parts, Segments: w.segments}, nil
}

// document is a map's JSON. What is not needed, such as the text of the
// sources, is skipped. Its values share the text's memory.
type document struct {
	version, sourceRoot, mappings []byte
	sources, names                [][]byte // as in the text: strings or null
	sections                      []byte   // nil: it has none
	debugID                       string
}

func readDocument(text []byte) (d document, err error) {
	err = members(text, func(name string, value []byte) (err error) {
		switch name {
		case "version":
			d.version = value
		case "sourceRoot":
			d.sourceRoot = value
		case "mappings":
			d.mappings = value
		case "sections":
			d.sections = value
		case "debugId", "debug_id":
			d.debugID = unquote(value)
		case "sources":
			d.sources, err = texts("sources", value, maxSources)
		case "names":
			d.names, err = texts("names", value, maxNames)
		}
		return err
	})
	if err == nil && string(d.version) != "3" {
		err = fault("The version of the map is %.20q. Only 3 is known.", d.version)
	}
	return d, err
}

// addSections adds the maps of an indexed map.
func (w *writer) addSections(list []byte) error {
	count := 0
	return elements(list, func(value []byte) error {
		if count++; count > maxSections {
			return fault("The map has more than %d sections.", maxSections)
		}
		var offset struct{ Line, Column int }
		var inner []byte
		err := members(value, func(name string, value []byte) error {
			switch name {
			case "offset":
				if err := json.Unmarshal(value, &offset); err != nil {
					return fault("The offset of section %d can't be read.", count)
				}
			case "map":
				inner = value
			}
			return nil
		})
		if err != nil {
			return err
		}
		if inner == nil || offset.Line < 0 || offset.Column < 0 || offset.Line > maxNumber || offset.Column > maxNumber {
			return fault("Section %d has no map, or its offset is not valid.", count)
		}
		d, err := readDocument(inner)
		if err != nil {
			return err
		}
		if d.sections != nil {
			return fault("Section %d has sections of its own.", count)
		}
		from := position{int32(offset.Line), int32(offset.Column)} //nolint:gosec // checked above
		return w.add(d, from)
	})
}

// decoder is one of a text that no reading changes.
func decoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true))
}

// members calls visit with each member of an object and its value, as in the text.
func members(text []byte, visit func(name string, value []byte) error) error {
	d := decoder(text)
	if kind := d.PeekKind(); kind != '{' {
		return notJSON(errors.New("it is not an object"))
	}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			break
		}
		known := name.String() // before the next reading, which invalidates it
		var value []byte
		if value, err = next(d, text); err == nil {
			if err := visit(known, value); err != nil {
				return err
			}
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	if err == nil {
		if _, err = d.ReadToken(); errors.Is(err, io.EOF) {
			return nil
		}
	}
	return notJSON(err)
}

// elements calls visit with each element of an array, as in the text.
func elements(text []byte, visit func(value []byte) error) error {
	d := decoder(text)
	if d.PeekKind() != '[' {
		return fault("The map has %.20q where a list is expected.", text)
	}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != ']' {
		var value []byte
		if value, err = next(d, text); err == nil {
			if err := visit(value); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return notJSON(err)
	}
	return nil
}

// next skips a value and returns it as in the text.
func next(d *jsontext.Decoder, text []byte) ([]byte, error) {
	from := d.InputOffset()
	if err := d.SkipValue(); err != nil {
		return nil, err
	}
	return bytes.TrimLeft(text[from:d.InputOffset()], " \t\r\n:,"), nil
}

func notJSON(err error) error {
	return fault("The map is not one JSON object: %.200v.", err)
}

// texts are the elements of a list of strings.
func texts(what string, list []byte, most int) (all [][]byte, err error) {
	err = elements(list, func(value []byte) error {
		if len(all) == most {
			return fault("The map has more than %d %s.", most, what)
		}
		all = append(all, value)
		return nil
	})
	return all, err
}

// unquote is the text of a JSON string; empty of any other value.
func unquote(value []byte) string {
	if len(value) == 0 || value[0] != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, value) // it was read before: only UTF-8 may be invalid, and is replaced
	return string(text)
}
