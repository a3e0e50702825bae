package ingest

import (
	"maps"
	"slices"
	"strings"
)

// A columnSet collects the values of entries.
type columnSet struct {
	entries   int // so far
	masks     collected
	paths     map[string]*collected // bounded by maxPaths
	full      bool                  // there are more paths
	unknown   bool                  // there was an array at one of these
	last      *collected
	variables map[string]bool // bounded by maxVariables
	anyWord   bool            // there are more
}

func newColumnSet() columnSet {
	return columnSet{masks: newCollected(string(maskColumn)), paths: map[string]*collected{}, variables: map[string]bool{}}
}

// collected is what is known of a path.
type collected struct {
	path  string
	next  *collected        // what came behind it last, as it mostly does again
	codes map[string]uint16 // of values, bounded by maxColumnValues; nil: it is no column
	list  []string
	bytes int      // of list
	of    []uint16 // the code of each entry, up to the last that has a value
	count int      // of values
	array bool
}

func (s *columnSet) at(path []byte) *collected {
	if s.last != nil && s.last.next != nil && s.last.next.path == string(path) {
		s.last = s.last.next
		return s.last
	}
	c := s.find(path)
	if s.last != nil {
		s.last.next = c
	}
	s.last = c
	return c
}

func (s *columnSet) find(path []byte) *collected {
	if len(path) > maxPathBytes {
		s.full = true
		return nil
	}
	if c := s.paths[string(path)]; c != nil || s.full {
		return c
	}
	if len(s.paths) == maxPaths {
		s.full = true
		return nil
	}
	c := newCollected(string(path))
	s.paths[c.path] = &c
	return &c
}

func newCollected(path string) collected { return collected{path: path, codes: map[string]uint16{}} }

// begin begins an entry.
func (s *columnSet) begin() {
	if s.entries == 0 {
		*s = newColumnSet()
	}
	s.entries++
}

// addVariable takes a word of a variable.
func (s *columnSet) addVariable(word []byte) {
	switch {
	case s.anyWord, mayBeVariable(word), s.variables[string(word)]:
	case len(s.variables) == maxVariables:
		s.anyWord = true
	default:
		s.variables[string(word)] = true
	}
}

// object and array note that a value is no scalar.
func (s *columnSet) object(path []byte) {
	if c := s.at(path); c != nil {
		c.drop()
	}
}

func (s *columnSet) array(path []byte) {
	c := s.at(path)
	if c == nil {
		s.unknown = true
		return
	}
	c.drop()
	c.array = true
}

func (c *collected) drop() { c.codes, c.list, c.of = nil, nil, nil }

// add takes a scalar, and reports whether it was there before.
func (s *columnSet) add(path, value []byte) (known bool) {
	c := s.at(path)
	return c != nil && c.add(s.entries, value)
}

// add takes the value of the last of some entries.
func (c *collected) add(entries int, value []byte) (known bool) {
	if c.codes == nil {
		return false
	}
	if n := len(c.of); n > 0 && n == entries-1 && c.of[n-1] > 0 && c.list[c.of[n-1]-1] == string(value) { // as of the entry before
		c.of, c.count = append(c.of, c.of[n-1]), c.count+1
		return true
	}
	code, known := c.codes[string(value)]
	switch {
	case len(c.of) == entries: // a second value of the entry
		c.drop()
		return known
	case !known && c.isFull(len(value)):
		c.drop()
		return false
	case !known:
		text := string(value)
		c.list, c.bytes = append(c.list, text), c.bytes+len(value)
		code = uint16(len(c.list)) //nolint:gosec // bounded by maxColumnValues
		c.codes[text] = code
	}
	for len(c.of) < entries-1 {
		c.of = append(c.of, 0)
	}
	c.of, c.count = append(c.of, code), c.count+1
	return known
}

// isFull reports whether a further value is too much for a column.
func (c *collected) isFull(size int) bool {
	n := len(c.list) + 1
	return n > maxColumnValues || size > maxValueText || c.bytes+size > maxColumnBytes || n > 4*fewValues && n > c.count/2+fewValues
}

// columns returns those of entries in an order, by their numbers.
func (s *columnSet) columns(list []Stored, order []int32) Columns {
	columns := Columns{others: map[jsonPath]bool{}, whole: !s.full && !s.unknown, variables: slices.Sorted(maps.Keys(s.variables)), anyWord: s.anyWord}
	columns.add(levelColumn, len(list), func(i int) string { return list[i].Level.String() })
	columns.add(environmentColumn, len(list), func(i int) string { return list[i].Environment })
	if s.masks.isColumn() {
		columns.list = append(columns.list, s.masks.column(order))
	}
	for path, c := range s.paths {
		switch {
		case s.unknown:
		case !c.isColumn(), s.isInArray(path), strings.HasPrefix(path, ":"): // which would be one of the columns above
			columns.others[jsonPath(path)] = c.array
		default:
			columns.list = append(columns.list, c.column(order))
		}
	}
	slices.SortFunc(columns.list, func(a, b column) int { return strings.Compare(string(a.path), string(b.path)) })
	return columns
}

// add adds a column of the values of entries, unless there are very many.
func (c *Columns) add(path jsonPath, entries int, value func(i int) string) {
	made, table := column{path: path, low: make([]byte, entries)}, newTable[string]()
	for i := range entries {
		if of := value(i); of != "" {
			made.low[i] = byte(1 + table.number(of))
		}
	}
	if len(table.list) > 255 {
		return
	}
	for _, value := range table.list {
		made.values = append(made.values, []byte(value))
	}
	c.list = append(c.list, made)
}

// isInArray reports whether other values at the path may be in an array.
func (s *columnSet) isInArray(path string) bool {
	for other, c := range s.paths {
		if c.array && strings.HasPrefix(path, other+".") {
			return true
		}
	}
	return false
}

func (c *collected) isColumn() bool {
	return c.codes != nil && len(c.list) <= max(fewValues, c.count/2)
}

func (c *collected) column(order []int32) column {
	made := column{path: jsonPath(c.path), low: make([]byte, len(order))}
	for _, value := range c.list {
		made.values = append(made.values, []byte(value))
	}
	if len(c.list) > 255 {
		made.high = make([]byte, len(order))
	}
	for i, number := range order {
		if int(number) < len(c.of) {
			made.low[i] = byte(c.of[number])
			if made.high != nil {
				made.high[i] = byte(c.of[number] >> 8)
			}
		}
	}
	return made
}
