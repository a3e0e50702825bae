package sourcemap

import "strings"

// maxNumber is the largest line or column.
const maxNumber = 1<<31 - 1

// position is a place in a script, from 0.
type position struct{ line, column int32 }

func (p position) before(other position) bool {
	return p.line < other.line || p.line == other.line && p.column < other.column
}

// segment says where what begins at a place of the script was written.
type segment struct {
	at           position
	source       int32 // -1: nowhere
	line, column int32 // in the source, from 0
	name         int32 // -1: it has none
}

// mappings reads segments. What a segment does not say is as in the one before.
type mappings struct {
	text    []byte
	from    position // where the map begins in the script
	sources int
	names   int
	// Of the last segment; 64 bits hold any sum of two numbers of the text.
	line, column                           int64
	source, sourceLine, sourceColumn, name int64
}

// each calls visit with each segment, in the order of the script.
func (m *mappings) each(visit func(segment) error) error {
	begun := false // the line has a segment
	for i := 0; i < len(m.text); {
		switch m.text[i] {
		case ';':
			m.line, m.column, begun = m.line+1, 0, false
			i++
		case ',':
			i++
		default:
			fields, n, end, err := readFields(m.text, i)
			if err != nil {
				return err
			}
			if begun && fields[0] < 0 {
				return fault("Line %d of the mappings goes back at byte %d: segments must be in order.", m.line+1, i)
			}
			s, err := m.next(fields, n)
			if err == nil {
				err = visit(s)
			}
			if err != nil {
				return err
			}
			i, begun = end, true
		}
	}
	return nil
}

func (m *mappings) next(fields [5]int64, n int) (s segment, err error) {
	m.column += fields[0]
	line, column := int64(m.from.line)+m.line, m.column
	if m.line == 0 {
		column += int64(m.from.column)
	}
	if column < 0 || column > maxNumber || line > maxNumber {
		return s, fault("The mappings have a place that is not in any script: line %d, column %d.", line+1, column)
	}
	s = segment{at: position{int32(line), int32(column)}, source: -1, name: -1} //nolint:gosec // checked above
	if n == 1 {
		return s, nil
	}
	m.source, m.sourceLine, m.sourceColumn = m.source+fields[1], m.sourceLine+fields[2], m.sourceColumn+fields[3]
	if m.source < 0 || m.source >= int64(m.sources) {
		return s, fault("Line %d of the mappings names source %d, and there are %d.", line+1, m.source, m.sources)
	}
	if m.sourceLine < 0 || m.sourceLine > maxNumber || m.sourceColumn < 0 || m.sourceColumn > maxNumber {
		return s, fault("Line %d of the mappings has a place that is not in any source: line %d, column %d.", line+1, m.sourceLine+1, m.sourceColumn)
	}
	s.source, s.line, s.column = int32(m.source), int32(m.sourceLine), int32(m.sourceColumn) //nolint:gosec // checked above
	if n == 4 {
		return s, nil
	}
	if m.name += fields[4]; m.name < 0 || m.name >= int64(m.names) {
		return s, fault("Line %d of the mappings uses name %d, and there are %d.", line+1, m.name, m.names)
	}
	s.name = int32(m.name) //nolint:gosec // checked above
	return s, nil
}

// readFields reads the numbers of the segment at a byte: 1, 4 or 5.
func readFields(text []byte, at int) (fields [5]int64, n, end int, err error) {
	for end = at; end < len(text) && text[end] != ',' && text[end] != ';'; n++ {
		if n == len(fields) {
			return fields, n, end, fault("The segment at byte %d of the mappings has more than 5 numbers.", at)
		}
		if fields[n], end, err = readNumber(text, end); err != nil {
			return fields, n, end, err
		}
	}
	if n != 1 && n < 4 {
		err = fault("The segment at byte %d of the mappings has %d numbers. 1, 4 or 5 are possible.", at, n)
	}
	return fields, n, end, err
}

// digits are the values of base 64; 255 is none.
var digits = func() (of [256]byte) {
	for i := range of {
		of[i] = byte(strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", byte(i))) //nolint:gosec // -1 becomes 255
	}
	return of
}()

// readNumber reads a number of 32 bits: 5 bits a digit, the lowest first,
// the sixth if more follow. The lowest bit of all is the sign.
func readNumber(text []byte, at int) (number int64, end int, err error) {
	for shift := 0; at < len(text); shift += 5 {
		digit := digits[text[at]]
		if digit > 63 || shift > 30 {
			return 0, at, fault("Byte %d of the mappings is not part of a number of 32 bits.", at)
		}
		at++
		number |= int64(digit&31) << shift
		if digit&32 == 0 {
			if number&1 == 1 {
				return -(number >> 1), at, nil
			}
			return number >> 1, at, nil
		}
	}
	return 0, at, fault("The mappings end within a number.")
}
