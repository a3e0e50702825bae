package ingest

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// Bounds of the columns of a block.
const (
	maxPaths        = 48      // that are looked at
	maxPathBytes    = 128     // of one
	maxColumnValues = 1024    // distinct ones, at most half as many as there are values
	maxColumnBytes  = 1 << 16 // of distinct values
	fewValues       = 16      // distinct ones that are always a column
	maxVariables    = 256     // words of variables
)

// Columns of what is at no path of texts, under names that no path has. They have plain texts.
const (
	levelColumn       = jsonPath(":" + entryfield.Level)
	environmentColumn = jsonPath(":" + entryfield.Environment)
	maskColumn        = jsonPath(":" + entryfield.Message) // masks of messages
)

// columnsVersion is the first byte of stored columns.
const columnsVersion = 2

// Columns are the levels, environments, masks of messages and values of
// frequent fields of a block's entries. A search and a count read them
// instead of texts, which are fifty times as large. The zero value
// knows of no field.
type Columns struct {
	list      []column
	others    map[jsonPath]bool // paths with values that are no columns: true where an array is; bounded by maxPaths
	whole     bool              // any other path has no value
	variables []string          // words of the variables of messages, without those of mayBeVariable
	anyWord   bool              // variables may have any word
}

// A column is the value of each entry at a path: one scalar or nothing.
type column struct {
	path   jsonPath
	values [][]byte // distinct, as JSON
	low    []byte   // of each entry, 1 + the index of its value; 0: it has none
	high   []byte   // the upper bytes of these; empty: all are 0
}

func (c *column) code(entry int) int {
	code := int(c.low[entry])
	if len(c.high) > 0 {
		code |= int(c.high[entry]) << 8
	}
	return code
}

// counts returns how many of the rows have each code; nil: of all rows.
func (c *column) counts(rows []bool) []int64 {
	counts := make([]int64, len(c.values)+1)
	if len(c.high) == 0 && rows == nil {
		for _, code := range c.low {
			counts[code]++
		}
		return counts
	}
	for i := range c.low {
		if rows == nil || rows[i] {
			counts[c.code(i)]++
		}
	}
	return counts
}

// scalar returns the text of the value with a code; false where it has
// none, or null.
func (c *column) scalar(code int) (text []byte, is bool) {
	switch {
	case code == 0:
		return nil, false
	case c.path == levelColumn, c.path == environmentColumn:
		return c.values[code-1], true
	case string(c.values[code-1]) == "null":
		return nil, false
	}
	return textOf(c.values[code-1]), true
}

// at returns the column at a path; nil: there is none.
func (c *Columns) at(path jsonPath) *column {
	if i := c.number(path); i >= 0 {
		return &c.list[i]
	}
	return nil
}

// knows reports whether all values at a path are in a column, or there are none.
func (c *Columns) knows(path jsonPath) bool {
	if path.neverInColumns() {
		return false
	}
	if c.at(path) != nil {
		return true
	}
	if _, is := c.others[path]; is || !c.whole {
		return false
	}
	for other, array := range c.others {
		if array && strings.HasPrefix(string(path), string(other)+".") {
			return false
		}
	}
	return true
}

// needed returns the numbers of the columns at paths; false where it
// does not know one of these.
func (c *Columns) needed(paths []jsonPath) (numbers []int, known bool) {
	for _, path := range paths {
		i := c.number(path)
		if i < 0 && !c.knows(path) {
			return nil, false
		}
		if i >= 0 && !slices.Contains(numbers, i) {
			numbers = append(numbers, i)
		}
	}
	return numbers, true
}

// levels returns how many of the rows have each level.
func (c *Columns) levels(rows []bool) (levels LevelCounts) {
	if column := c.at(levelColumn); column != nil {
		for code, n := range column.counts(rows) {
			level := SeverityNone
			if code > 0 {
				level, _ = ParseSeverity(column.values[code-1])
			}
			levels[level] += n
		}
	}
	return levels
}

// number returns the number of the column at a path; negative: there is none.
func (c *Columns) number(path jsonPath) int {
	for i := range c.list { // which copies no column
		if c.list[i].path == path {
			return i
		}
	}
	return -1
}

// allAt returns the columns at paths.
func (c *Columns) allAt(paths []jsonPath) (all []*column) {
	for _, path := range paths {
		if column := c.at(path); column != nil {
			all = append(all, column)
		}
	}
	return all
}

// Attach has entries of a directory, all of a block, read their values in the columns.
func (c *Columns) Attach(entries []Stored) {
	for i := range entries {
		entries[i].columns, entries[i].row = c, i
	}
}

// find calls each with the value of an entry at a path that is known, and
// returns its answer.
func (c *Columns) find(entry int, path jsonPath, each func(value []byte) bool) bool {
	column := c.at(path)
	if column == nil {
		return false
	}
	code := column.code(entry)
	return code > 0 && each(column.values[code-1])
}

// neverInColumns reports whether values there are never in columns.
func (p jsonPath) neverInColumns() bool {
	switch first, _, _ := strings.Cut(string(p), "."); first {
	case entryfield.Timestamp, entryfield.Level, entryfield.Environment, entryfield.Message:
		return true
	}
	return p.isUnindexed()
}

// AppendColumns calls each with the parts of the stored form, uncompressed:
// the paths of columns, all other paths, and then the values and codes of
// each column. There are none where there are no columns.
func (b Block) AppendColumns(each func(part []byte)) {
	c := &b.Columns
	if len(c.list) == 0 {
		return
	}
	head := binary.AppendUvarint([]byte{columnsVersion}, uint64(len(c.list)))
	for i := range c.list {
		head = appendSized(head, string(c.list[i].path))
	}
	head = binary.AppendUvarint(head, uint64(len(c.others)))
	for _, path := range slices.Sorted(maps.Keys(c.others)) {
		head = appendBool(appendSized(head, string(path)), c.others[path])
	}
	head = binary.AppendUvarint(appendBool(head, c.whole), uint64(len(c.variables)))
	for _, word := range c.variables {
		head = appendSized(head, word)
	}
	each(appendBool(head, c.anyWord))
	for i := range c.list {
		each(c.list[i].append(nil))
	}
}

func (c *column) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(c.values)))
	for _, value := range c.values {
		dst = appendSized(dst, string(value))
	}
	return append(append(dst, c.low...), c.high...)
}

func appendSized(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendBool(dst []byte, is bool) []byte {
	if is {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// ParseColumns reads the first part of columns back. Of each column that is
// asked for, Read has to read the part. Those of another version know nothing.
func ParseColumns(head []byte) (c Columns, err error) {
	r := blockReader{data: head}
	if version := r.byte(); !r.failed && version != columnsVersion {
		return Columns{}, nil
	}
	c.list = make([]column, r.count())
	for i := range c.list {
		c.list[i].path = jsonPath(r.bytes(r.count()))
	}
	c.others = map[jsonPath]bool{}
	for range r.count() {
		path := jsonPath(r.bytes(r.count()))
		c.others[path] = r.byte() == 1
	}
	c.whole = r.byte() == 1
	c.variables = make([]string, r.count())
	for i := range c.variables {
		c.variables[i] = string(r.bytes(r.count()))
	}
	c.anyWord = r.byte() == 1
	if r.failed || len(r.data) > 0 {
		return Columns{}, errBlock
	}
	return c, nil
}

// Read reads a column back, whose memory it shares, of a block with that
// many entries.
func (c *Columns) Read(number int, part []byte, entries int) error {
	column, r := &c.list[number], blockReader{data: part}
	column.values = make([][]byte, r.count())
	for i := range column.values {
		if column.values[i] = r.bytes(r.count()); len(column.values[i]) == 0 {
			return errBlock
		}
	}
	column.low = r.bytes(entries)
	if column.high = r.data; len(r.data) > 0 {
		column.high = r.bytes(entries)
	}
	if r.failed || len(r.data) > 0 || !column.isSound() {
		return errBlock
	}
	return nil
}

// isSound reports whether each code has a value.
func (c *column) isSound() bool {
	if len(c.high) == 0 {
		most := byte(0)
		for _, code := range c.low {
			most = max(most, code)
		}
		return int(most) <= len(c.values)
	}
	for i := range c.low {
		if c.code(i) > len(c.values) {
			return false
		}
	}
	return true
}

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
