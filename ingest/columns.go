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
	text   []byte   // that has them, each behind its size; only where it was read
	low    []byte   // of each entry, 1 + the index of its value; 0: it has none
	high   []byte   // the upper bytes of these; empty: all are 0

	levels  []byte  // of a summary: the level of a row
	weights []int64 // and how many entries it stands for; nil: one
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
	if c.weights != nil {
		for i, entries := range c.weights {
			if rows == nil || rows[i] {
				counts[c.code(i)] += entries
			}
		}
		return counts
	}
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
	if c.at(path) != nil {
		return true
	}
	if path.neverInColumns() || path.isOfNoText() {
		return false
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
	each(c.head())
	for i := range c.list {
		each(c.list[i].append(nil))
	}
}

// head is the first part.
func (c *Columns) head() []byte {
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
	return appendBool(head, c.anyWord)
}

func (c *column) append(dst []byte) []byte {
	return append(append(appendValues(dst, c.values), c.low...), c.high...)
}

func appendValues(dst []byte, values [][]byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	for _, value := range values {
		dst = appendSized(dst, string(value))
	}
	return dst
}

func appendSized(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// sizeBytes is how long a size is.
func sizeBytes(size int) (bytes int) {
	for bytes = 1; size >= 0x80; size >>= 7 {
		bytes++
	}
	return bytes
}

func appendBool(dst []byte, is bool) []byte {
	if is {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// ParseColumns reads the first part of columns back. Of each column that is
// asked for, Read has to read the part, which it may do again for columns of the same
// first part. Those of another version know nothing.
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
	column.readValues(&r)
	column.low = r.bytes(entries)
	if column.high = r.data; len(r.data) > 0 {
		column.high = r.bytes(entries)
	}
	if r.failed || len(r.data) > 0 || !column.isSound() {
		return errBlock
	}
	return nil
}

// readValues reads values, none of which is empty.
func (c *column) readValues(r *blockReader) {
	values := r.count()
	c.values, c.text = slices.Grow(c.values[:0], values)[:values], r.data
	for i := range values {
		c.values[i] = r.bytes(r.count())
		r.failed = r.failed || len(c.values[i]) == 0
	}
	c.text = c.text[:len(c.text)-len(r.data)]
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
