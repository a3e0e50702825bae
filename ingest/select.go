package ingest

import (
	"bytes"
	"slices"
	"unicode"
)

// Select reports which entries of a block match, whatever their times, by
// the columns that Columns names; nil: all do; false: these can't tell.
func (c *Count) Select(of *Columns, entries int) (rows []bool, known bool) {
	conditions := conditionsOf(&c.Search)
	if len(conditions) == 0 {
		return nil, true
	}
	rows = make([]bool, entries)
	return rows, conditions.mark(of, rows)
}

// conditionsOf are what a search asks of entries besides their times.
func conditionsOf(s *Search) (all all) {
	if s.Levels != 0 {
		all = append(all, levels(s.Levels))
	}
	if s.Environment != "" {
		all = append(all, exactEnvironment(s.Environment))
	}
	if s.Query.root != nil {
		all = append(all, s.Query.root)
	}
	return all
}

// mark sets those rows that match.
func (a all) mark(c *Columns, rows []bool) (known bool) {
	for i := range rows {
		rows[i] = true
	}
	part := make([]bool, len(rows))
	for _, condition := range a {
		if !condition.mark(c, part) {
			return false
		}
		for i := range rows {
			rows[i] = rows[i] && part[i]
		}
	}
	return true
}

func (e either) mark(c *Columns, rows []bool) (known bool) {
	clear(rows)
	part := make([]bool, len(rows))
	for _, condition := range e {
		if !condition.mark(c, part) {
			return false
		}
		for i := range rows {
			rows[i] = rows[i] || part[i]
		}
	}
	return true
}

func (n negation) mark(c *Columns, rows []bool) (known bool) {
	if !n.of.mark(c, rows) {
		return false
	}
	for i := range rows {
		rows[i] = !rows[i]
	}
	return true
}

func (l levels) mark(c *Columns, rows []bool) (known bool) {
	return c.markAt(levelColumn, rows, func(value []byte) bool {
		level, _ := ParseSeverity(value)
		return SeveritySet(l).Has(level)
	})
}

func (e inEnvironment) mark(c *Columns, rows []bool) (known bool) {
	return c.markAt(environmentColumn, rows, func(value []byte) bool { return pattern(e).fits(appendFolded(nil, value)) })
}

// exactEnvironment is the environment of a Search.
type exactEnvironment string

func (e exactEnvironment) matches(entry *Stored) bool { return entry.Environment == string(e) }
func (exactEnvironment) mayMatch(*Header) bool        { return true }

func (e exactEnvironment) mark(c *Columns, rows []bool) (known bool) {
	return c.markAt(environmentColumn, rows, func(value []byte) bool { return string(value) == string(e) })
}

// markAt sets the rows whose value in a column holds, nil where there is none.
func (c *Columns) markAt(path jsonPath, rows []bool, holds func(value []byte) bool) (known bool) {
	column := c.at(path)
	if column == nil {
		return false
	}
	of := make([]bool, 1+len(column.values))
	of[0] = holds(nil)
	for i, value := range column.values {
		of[i+1] = holds(value)
	}
	for i := range rows {
		rows[i] = of[column.code(i)]
	}
	return true
}

func (f field) mark(c *Columns, rows []bool) (known bool) {
	clear(rows)
	part := make([]bool, len(rows))
	for _, path := range f.paths {
		if !c.knows(path) {
			return false
		}
		if !c.markAt(path, part, func(value []byte) bool { return value != nil && f.holds(value) }) {
			continue
		}
		for i := range rows {
			rows[i] = rows[i] || part[i]
		}
	}
	return true
}

// mark knows nothing where the words of a variable may be some of the phrase.
func (p phrase) mark(c *Columns, rows []bool) (known bool) {
	masks := c.at(maskColumn)
	if masks == nil {
		return false
	}
	var word [maxWordBytes]byte
	variable, texts, sure := c.inVariables(p), p.needle().in(masks.text), true
	known = c.markAt(maskColumn, rows, func(mask []byte) bool {
		if mask == nil {
			return false
		}
		if may := texts.mayHave(sizeBytes(len(mask)), len(mask)); variable == 0 && !may && !isCut(mask) {
			return false
		}
		found, may := p.inMask(&word, mask, variable)
		sure = sure && (found || !may)
		return found
	})
	return known && sure
}

// inVariables has bit i if a variable may have word i of the phrase.
func (c *Columns) inVariables(p phrase) (words uint64) {
	for i := range p {
		_, listed := slices.BinarySearch(c.variables, p[i].text)
		if c.anyWord || listed || !p[i].isPlain() {
			words |= 1 << i
		}
	}
	return words
}

// mayBeVariable reports whether a word is one that any variable may have: one with
// digits, or a part of an id.
func mayBeVariable(word []byte) bool {
	hex := true
	for _, r := range string(word) {
		if unicode.IsDigit(r) {
			return true
		}
		hex = hex && 'a' <= r && r <= 'f'
	}
	return hex
}

// inMask reports whether a message with the mask surely has the phrase, or may
// have it because some of its words, those of variable, may be in variables.
// Bit i of sure and may says that the words so far end with i+1 of the phrase.
func (p phrase) inMask(buffer *[maxWordBytes]byte, mask []byte, variable uint64) (found, maybe bool) {
	sure, may, last := uint64(0), uint64(0), uint64(1)<<(len(p)-1)
	next := func(word []byte) bool {
		may = p.advance(may, word)
		sure = (sure<<1 | 1) & may // what is sure may be
		found, maybe = sure&last != 0, maybe || may&last != 0
		return !found
	}
	for len(mask) > 0 && !found {
		end := slices.IndexFunc(mask, func(c byte) bool { return c < variables })
		if end < 0 {
			end = len(mask)
		}
		if eachWordIn(buffer, mask[:end], next); end == len(mask) {
			break
		}
		sure, may = 0, inVariable(may, variable, len(p))
		maybe = maybe || may&last != 0
		mask = mask[end+1:]
	}
	return found, maybe || isCut(mask)
}

// isCut reports whether the message goes on behind its mask.
func isCut(mask []byte) bool { return bytes.HasSuffix(mask, []byte(cutOff)) }

// inVariable is may behind a variable, which has one word or more.
func inVariable(may, variable uint64, words int) (behind uint64) {
	for i := range words {
		if variable&(1<<i) != 0 && (i == 0 || (may|behind)&(1<<(i-1)) != 0) {
			behind |= 1 << i
		}
	}
	return behind
}

// isInMasks reports whether masks of messages may tell where the phrase is: one
// of its words is in no variable, so that few masks may have it.
func (p phrase) isInMasks() bool { return slices.ContainsFunc(p, pattern.isPlain) }

func (p pattern) isPlain() bool { return p.whole() && !mayBeVariable([]byte(p.text)) }

// columnsOf returns the paths of the columns that a condition needs.
func columnsOf(root condition) (paths []jsonPath) {
	eachCondition(root, func(c condition) {
		switch c := c.(type) {
		case phrase:
			paths = append(paths, maskColumn)
		case field:
			paths = append(paths, c.paths...)
		case levels:
			paths = append(paths, levelColumn)
		case inEnvironment, exactEnvironment:
			paths = append(paths, environmentColumn)
		}
	})
	return paths
}
