package ingest

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// A summary says how many entries of a bundle have each value of a column, at
// each level: a count that needs one column besides levels reads it instead of
// the columns of all blocks. It is stored as Columns are, with a table for each column.

// maxSummaryPaths bounds the paths of a summary.
const maxSummaryPaths = 2 * maxPaths

// AppendSummary calls each with the parts of the stored form, uncompressed; there
// are none where the blocks have no columns.
func (b *Bundle) AppendSummary(each func(part []byte)) {
	s := b.summary()
	if len(s.list) == 0 {
		return
	}
	each(s.head())
	for i := range s.list {
		each(s.list[i].appendTable(nil))
	}
}

// summary is of the paths that all blocks know.
func (b *Bundle) summary() (s Columns) {
	s.whole, s.others = true, map[jsonPath]bool{}
	paths, variables := map[jsonPath]bool{}, map[string]bool{} // bounded by those of the blocks
	for _, block := range b.blocks {
		c := &block.Columns
		s.whole, s.anyWord = s.whole && c.whole, s.anyWord || c.anyWord
		for path, array := range c.others {
			s.others[path] = s.others[path] || array
		}
		for i := range c.list {
			paths[c.list[i].path] = true
		}
		for _, word := range c.variables {
			variables[word] = true
		}
	}
	s.variables = slices.Sorted(maps.Keys(variables))
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		table, is := b.table(path)
		switch {
		case is && len(s.list) < maxSummaryPaths:
			s.list = append(s.list, table)
		case path.isOfNoText(): // which counts as unknown where it is missing
		default:
			array := s.others[path]
			s.others[path] = array // so that it is there
		}
	}
	if len(s.others) > maxSummaryPaths {
		s.whole, s.others = false, nil
	}
	return s
}

// table counts the values at a path; false where a block does not know them all,
// or there are too many.
func (b *Bundle) table(path jsonPath) (c column, is bool) {
	values, bytes := newTable[string](), 0
	counts := []LevelCounts{{}} // by code
	for _, block := range b.blocks {
		of := block.Columns.at(path)
		switch {
		case of == nil && !block.Columns.knows(path):
			return column{}, false
		case of == nil:
			counts[0].add(block.Entries)
			continue
		}
		codes := make([]int, 1+len(of.values))
		for i, value := range of.values {
			if codes[i+1] = 1 + int(values.number(string(value))); codes[i+1] == len(counts) { //nolint:gosec // bounded by the blocks
				counts, bytes = append(counts, LevelCounts{}), bytes+len(value)
			}
		}
		for i := range of.low {
			counts[codes[of.code(i)]][block.List[i].Level]++
		}
	}
	if len(values.list) > maxColumnValues || bytes > maxColumnBytes {
		return column{}, false
	}
	return tableOf(path, values.list, counts), true
}

// tableOf has a row for each value and level that entries have.
func tableOf(path jsonPath, values []string, counts []LevelCounts) column {
	c := column{path: path}
	for _, value := range values {
		c.values = append(c.values, []byte(value))
	}
	for code := range counts {
		for level, entries := range counts[code] {
			if entries > 0 {
				c.addRow(code, Severity(level), entries) //nolint:gosec // at most SeverityFatal
			}
		}
	}
	return c
}

func (c *column) addRow(code int, level Severity, entries int64) {
	c.low, c.high = append(c.low, byte(code)), append(c.high, byte(code>>8)) //nolint:gosec // both halves of it
	c.levels, c.weights = append(c.levels, byte(level)), append(c.weights, entries)
}

// appendTable appends the values, and then the codes, the levels and the entries of all rows.
func (c *column) appendTable(dst []byte) []byte {
	dst = binary.AppendUvarint(appendValues(dst, c.values), uint64(len(c.low)))
	for i := range c.low {
		dst = binary.AppendUvarint(dst, uint64(c.code(i))) //nolint:gosec // not negative
	}
	dst = append(dst, c.levels...)
	for _, entries := range c.weights {
		dst = binary.AppendUvarint(dst, uint64(entries)) //nolint:gosec // not negative
	}
	return dst
}

// ReadTable reads a column of a summary back, whose memory it shares.
func (c *Columns) ReadTable(number int, part []byte) error {
	column, r := &c.list[number], blockReader{data: part}
	column.readValues(&r)
	rows := r.count()
	column.low, column.high = slices.Grow(column.low[:0], rows)[:rows], slices.Grow(column.high[:0], rows)[:rows]
	column.weights = slices.Grow(column.weights[:0], rows)[:rows]
	for i := range rows {
		code := r.int()
		r.failed = r.failed || code > len(column.values)
		column.low[i], column.high[i] = byte(code), byte(code>>8) //nolint:gosec // both halves of it
	}
	column.levels = r.bytes(rows)
	for i := range rows {
		column.weights[i] = int64(r.int())
		r.failed = r.failed || len(column.levels) <= i || Severity(column.levels[i]) > SeverityFatal
	}
	if r.failed || len(r.data) > 0 {
		return errBlock
	}
	return nil
}

// Tables returns the numbers of the columns of a summary that the count needs; false
// where they don't suffice. A table of another column has levels as well.
func (c *Count) Tables(summary *Columns) (numbers []int, known bool) {
	tables := c.tables()
	for _, paths := range tables {
		if len(tables[0]) > 0 {
			paths = append(paths, levelColumn)
		}
		needed, known := summary.needed(paths)
		if !known {
			return nil, false
		}
		if len(needed) > 1 {
			needed = slices.DeleteFunc(needed, func(i int) bool { return summary.list[i].path == levelColumn })
		}
		for _, i := range needed {
			if !slices.Contains(numbers, i) {
				numbers = append(numbers, i)
			}
		}
	}
	return numbers, true
}

// tables are the paths of the columns that decide about the entries, and about the values of each field.
func (c *Count) tables() [][]jsonPath {
	conditions := columnsOf(conditionsOf(&c.Search))
	tables := [][]jsonPath{conditions}
	for i := range c.By {
		tables = append(tables, slices.Concat(conditions, c.By[i].columns()))
	}
	return tables
}

// of returns the table of the one column among paths, besides levels; false
// where there are several, or it does not know one.
func (c *Columns) of(paths []jsonPath) (table Columns, is bool) {
	found := c.number(levelColumn)
	for _, path := range paths {
		at := c.number(path)
		switch {
		case at < 0 && !c.knows(path):
			return Columns{}, false
		case at < 0, at == found, path == levelColumn:
		case found >= 0 && c.list[found].path != levelColumn:
			return Columns{}, false
		default:
			found = at
		}
	}
	if found < 0 {
		return Columns{}, false
	}
	table, of := *c, &c.list[found]
	if table.list = []column{*of}; of.path != levelColumn {
		table.list = append(table.list, of.levelsOf())
	}
	return table, true
}

// levelsOf is the column of the levels of a table's rows.
func (c *column) levelsOf() column {
	levels := column{path: levelColumn, low: make([]byte, len(c.levels)), weights: c.weights}
	for level := SeverityNone; level <= SeverityFatal; level++ {
		levels.values = append(levels.values, []byte(level.String()))
	}
	for i, level := range c.levels {
		levels.low[i] = 1 + level
	}
	return levels
}

// isOfNoText reports whether a path is one of the columns under names that no path has.
func (p jsonPath) isOfNoText() bool { return strings.HasPrefix(string(p), ":") }

// AddSummary counts the entries of a bundle, whose header is that of all its
// blocks; false: the summary can't tell, and none are counted.
func (k *Counter) AddSummary(bundle *Candidate, summary *Columns) (known bool) {
	tables, rows := make([]Columns, 1+len(k.count.By)), make([][]bool, 1+len(k.count.By)) // first without a field
	for i, paths := range k.count.tables() {
		if tables[i], known = summary.of(paths); !known {
			return false
		}
		if rows[i], known = k.count.Select(&tables[i], len(tables[i].list[0].low)); !known {
			return false
		}
	}
	bucket, entries := k.count.bucket(bundle.Max), bundle.Entries
	if rows[0] != nil {
		entries = tables[0].levels(rows[0])
	}
	k.addLevels(&entries, bucket)
	for i := range k.count.By {
		k.addValues(i, bundle, &tables[i+1], rows[i+1], &entries, bucket)
	}
	return true
}
