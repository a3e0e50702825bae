package ingest

import (
	"bytes"
	"math"
	"slices"
	"time"
)

// Bounds of a count.
const (
	MaxBuckets     = 1000
	MaxCountFields = 8
	MaxSplitFields = 2   // the same, where each value has buckets or numbers
	MaxValues      = 100 // of a field, in an answer
	MaxCounters    = 5   // that share one count
	maxTracked     = 200 // values of a field that are counted at once
	maxSplit       = 50  // the same, where each has buckets or numbers
	maxFieldName   = 256 // bytes
	maxValueText   = 256 // bytes of a value that is counted by itself
	maxOfEntry     = 64  // values of a field that one entry counts for
	maxNumbers     = 16  // numbers that count of one entry
)

// A Count asks how many entries a search matches: in all, in buckets of
// time, and by the values of fields.
type Count struct {
	Search Search        // newest first; its page does not matter
	Every  time.Duration // the width of a bucket, whole seconds; 0: no buckets. It needs From and To
	By     []Field       // at most MaxCountFields, or MaxSplitFields
	Of     Field         // whose numbers are summed up; its zero value: none

	MaxBytes int // to read for it, at most; 0: as a search may
}

// Room is about the most memory that the Counters of c take, in bytes.
func (c *Count) Room() int64 {
	const aside, value, numbers, pattern = 256 << 10, maxValueText + 144, 2 * 8 * maxBins, maxExample + 16*maxPlaces + 256
	room := int64(aside)
	for _, field := range c.By {
		of := int64(value)
		if c.Split() {
			of += numbers + 8*c.Buckets()
		}
		if field.name == FieldPattern {
			of += pattern
		}
		room += int64(2*c.tracked(field)) * of
	}
	return MaxCounters * room
}

// Split reports whether each value has buckets or numbers of its own.
func (c *Count) Split() bool { return c.Every > 0 || c.Of.name != "" }

// tracked is how many values of a field are counted at once.
func (c *Count) tracked(field Field) int {
	switch {
	case c.Split():
		return maxSplit
	case field.name == FieldPattern:
		return MaxPatterns
	}
	return maxTracked
}

// FirstBucket is when the first bucket begins: a multiple of Every.
func (c *Count) FirstBucket() int64 {
	every := int64(c.Every / time.Second)
	return floorDiv(c.Search.From.Seconds, every) * every
}

// Buckets is how many buckets there are, at least 1.
func (c *Count) Buckets() int64 {
	if c.Every == 0 {
		return 1
	}
	last := Instant{Seconds: c.Search.To.Seconds}
	if c.Search.To.Nanos == 0 {
		last.Seconds-- // To itself is not in the search
	}
	return max(1, c.bucket(last)+1)
}

// bucket is the number of the bucket that a time is in.
func (c *Count) bucket(at Instant) int64 {
	if c.Every == 0 {
		return 0
	}
	return floorDiv(at.Seconds-c.FirstBucket(), int64(c.Every/time.Second))
}

// A Reading is what a count has to read of a block besides its header.
type Reading uint8

// The parts of a block.
const (
	ReadDirectory Reading = 1 << iota
	ReadColumns
	ReadTexts
	ReadSummary // of the bundle
)

// Reads returns what the count has to read of a block; false: the block has
// no match. Where the columns don't know what it needs, it is ReadAll.
func (c *Count) Reads(block *Candidate) (reads Reading, any bool) {
	if !c.Search.MayFind(block) {
		return 0, false
	}
	reads = c.reads()
	if c.Search.Environment != "" {
		reads |= ReadDirectory
	}
	switch {
	case reads&ReadTexts != 0, reads&ReadColumns != 0 && block.Bytes < SmallBlockBytes: // which has no columns
		return ReadAll, true
	case reads&ReadColumns != 0 && c.Of.name == "":
		reads = ReadColumns
	case reads&ReadColumns != 0:
		reads |= ReadDirectory
	}
	if !c.holdsWhole(block) || c.bucket(block.Min) != c.bucket(block.Max) {
		reads |= ReadDirectory
	}
	return reads, true
}

func (c *Count) reads() Reading {
	reads := c.Search.Query.reads() | c.Of.reads()
	for _, field := range c.By {
		reads |= field.reads()
	}
	return reads
}

// CountsBundles reports whether headers or summaries of bundles may have all that it needs.
func (c *Count) CountsBundles() bool {
	reads := c.reads()
	return reads&ReadTexts == 0 && c.Of.name == "" && (reads&ReadColumns != 0 || reads == 0 && c.Search.Environment == "")
}

// ReadAll is all that says what entries are.
const ReadAll = ReadDirectory | ReadTexts

// holdsWhole reports whether all times of a block are searched.
func (c *Count) holdsWhole(block *Candidate) bool {
	from, to := c.Search.From, c.Search.To
	return (from == nil || block.Min.Compare(*from) >= 0) && (to == nil || block.Max.Compare(*to) < 0)
}

// Groups reports whether all that it needs of texts are the values of By.
func (c *Count) Groups() bool {
	reads := c.Search.Query.reads() | c.Of.reads()
	for _, field := range c.By {
		reads |= field.reads() & ReadTexts
	}
	return reads&(ReadColumns|ReadTexts) == 0
}

// reads returns what decides about a query.
func (q Query) reads() (reads Reading) {
	eachCondition(q.root, func(c condition) {
		switch c := c.(type) {
		case phrase:
			if reads |= ReadColumns; !c.isInMasks() {
				reads |= ReadTexts
			}
		case field:
			reads |= ReadColumns
		case levels:
		default:
			reads |= ReadDirectory
		}
	})
	return reads
}

// IsInColumns reports whether columns may tell what a query finds.
func (q Query) IsInColumns() bool {
	reads := q.reads()
	return reads&ReadColumns != 0 && reads&ReadTexts == 0
}

// Columns returns the numbers of the columns that the count needs; false
// where they don't suffice.
func (c *Count) Columns(of *Columns) (numbers []int, known bool) {
	paths := slices.Clone(c.Of.paths)
	for _, field := range c.By {
		paths = append(paths, field.columns()...)
	}
	if conditions := conditionsOf(&c.Search); len(conditions) > 0 {
		paths = append(append(paths, levelColumn), columnsOf(conditions)...)
	}
	return of.needed(paths)
}

// A Counted is the answer to a Count.
type Counted struct {
	Levels  LevelCounts   // of all that match
	Buckets []LevelCounts // of each bucket, from the first on; nil: none were asked for
	Numbers *Numbers      // of all; nil: none were asked for
	Fields  []FieldCounts // in the order of Count.By
	From    *Instant      // nil: all is counted; else the share was used up: what is newer than this is counted, and some of the rest
	Read    int64         // bytes that were read for it
}

// FieldCounts are the values of a field.
type FieldCounts struct {
	Field   Field
	Values  []ValueCount // the most frequent first
	Without int64        // entries that have no value there, or only one that is too long
	// Uncertain is by how much a count can be too low, because
	// there were too many values; a value that is missing has at most that many entries.
	Uncertain int64
}

// A ValueCount is how many entries have a value.
type ValueCount struct {
	Value   string
	Entries int64
	Buckets []int64  // nil: none were asked for
	Numbers *Numbers // nil: none were asked for
	Pattern *Pattern // of FieldPattern
}

// A Counter counts entries for a Count. Several may share the work.
type Counter struct {
	count   *Count
	sum     Counted
	tallies []tally
	values  [][]byte // of the last entry and field
	mask    []byte   // of the last entry
}

// NewCounter makes a Counter that has seen nothing.
func (c *Count) NewCounter() *Counter {
	k := &Counter{count: c, tallies: make([]tally, len(c.By))}
	if c.Every > 0 {
		k.sum.Buckets = make([]LevelCounts, c.Buckets())
	}
	if c.Of.name != "" {
		k.sum.Numbers = new(Numbers)
	}
	for i := range k.tallies {
		k.tallies[i] = newTally(c, c.By[i])
	}
	return k
}

// AddHeader counts the entries of a block that needs no more than ReadHeader.
func (k *Counter) AddHeader(block *Candidate) {
	for level, entries := range block.Entries {
		of := Stored{Place: Place{Time: block.Max}, Level: Severity(level)} //nolint:gosec // at most SeverityFatal
		if entries > 0 && k.count.Search.Matches(&of) {
			k.add(&of, block.Project, entries)
		}
	}
}

// AddRows counts the rows, nil: all, of a block that are in the searched times.
func (k *Counter) AddRows(entries []Stored, rows []bool, project string) {
	for i := range entries {
		if (rows == nil || rows[i]) && k.count.Search.covers(entries[i].Place) {
			k.add(&entries[i], project, 1)
		}
	}
}

// Add counts those entries of a block that match.
func (k *Counter) Add(entries []Stored, project string) {
	for i := range entries {
		if k.count.Search.Matches(&entries[i]) {
			k.add(&entries[i], project, 1)
		}
	}
}

// AddColumns counts the rows, nil: all, of a block that needs its columns alone.
func (k *Counter) AddColumns(block *Candidate, columns *Columns, rows []bool) {
	bucket, entries := k.count.bucket(block.Max), block.Entries
	if rows != nil {
		entries = columns.levels(rows)
	}
	k.addLevels(&entries, bucket)
	for i := range k.count.By {
		k.addValues(i, block, columns, rows, &entries, bucket)
	}
}

// addValues counts the values of one field, of rows with these levels.
func (k *Counter) addValues(i int, block *Candidate, columns *Columns, rows []bool, entries *LevelCounts, bucket int64) {
	field := &k.count.By[i]
	switch at := columns.allAt(field.columns()); {
	case field.name == FieldProject:
		if n := entries.Sum(); n > 0 {
			k.tallies[i].add([]byte(block.Project), n, bucket, nil)
		}
	case len(at) == 0:
		k.tallies[i].without += entries.Sum()
	case len(at) == 1:
		k.addColumn(i, at[0], rows, bucket)
	default:
		for row := range int(block.Entries.Sum()) {
			if rows == nil || rows[row] {
				k.addField(i, &Stored{columns: columns, row: row}, block.Project, 1, bucket, nil)
			}
		}
	}
}

func (k *Counter) addLevels(entries *LevelCounts, bucket int64) {
	k.sum.Levels.add(*entries)
	if k.sum.Buckets != nil {
		k.sum.Buckets[bucket].add(*entries)
	}
}

// addColumn counts each value of a column once, with its entries.
func (k *Counter) addColumn(i int, column *column, rows []bool, bucket int64) {
	for code, entries := range column.counts(rows) {
		if entries == 0 {
			continue
		}
		if value, is := column.scalar(code); is {
			k.tallies[i].add(value, entries, bucket, nil)
		} else {
			k.tallies[i].without += entries
		}
	}
}

// add counts a number of entries that are alike.
func (k *Counter) add(entry *Stored, project string, entries int64) {
	bucket := k.count.bucket(entry.Time)
	var of LevelCounts
	of[entry.Level] = entries
	k.addLevels(&of, bucket)
	numbers := k.numbers(entry)
	for _, number := range numbers {
		k.sum.Numbers.Add(number)
	}
	for i := range k.count.By {
		k.addField(i, entry, project, entries, bucket, numbers)
	}
}

// addField counts the values of one field.
func (k *Counter) addField(i int, entry *Stored, project string, entries, bucket int64, numbers []float64) {
	if k.count.By[i].name == FieldPattern {
		k.addPattern(&k.tallies[i], entry, bucket, numbers)
		return
	}
	values := k.values[:0]
	k.count.By[i].values(entry, project, func(value []byte) bool {
		if len(value) <= maxValueText && !slices.ContainsFunc(values, func(seen []byte) bool { return bytes.Equal(seen, value) }) {
			values = append(values, value)
		}
		return len(values) == maxOfEntry
	})
	for _, value := range values {
		k.tallies[i].add(value, entries, bucket, numbers)
	}
	if len(values) == 0 {
		k.tallies[i].without += entries
	}
	k.values = values
}

func (k *Counter) addPattern(t *tally, entry *Stored, bucket int64, numbers []float64) {
	message := entry.message()
	if k.mask = appendMask(k.mask[:0], message); len(k.mask) == 0 {
		t.without++
		return
	}
	t.add(k.mask, 1, bucket, numbers).Pattern.add(entry, message)
}

// numbers are those of an entry that are to be summed up.
func (k *Counter) numbers(entry *Stored) (numbers []float64) {
	if k.sum.Numbers == nil {
		return nil
	}
	k.count.Of.scalars(entry, func(value []byte) bool {
		if number, ok := numberOf(value); ok && !math.IsInf(number, 0) {
			numbers = append(numbers, number)
		}
		return len(numbers) == maxNumbers
	})
	return numbers
}

// AddAlike counts a number of entries that are alike in all that the count asks for.
func (k *Counter) AddAlike(entry *Stored, project string, entries int64) {
	if k.count.Search.Matches(entry) {
		k.add(entry, project, entries)
	}
}

// Spend notes the bytes that were read, and from when on all is counted if the share
// was used up.
func (k *Counter) Spend(from *Instant, read int64) {
	k.sum.Read += read
	if from != nil && (k.sum.From == nil || k.sum.From.Compare(*from) < 0) {
		k.sum.From = from
	}
}

// Read returns how many bytes were read for it.
func (k *Counter) Read() int64 { return k.sum.Read }

// Merge adds what another Counter of the same Count has seen, which is not used any more.
func (k *Counter) Merge(other *Counter) {
	k.Spend(other.sum.From, other.sum.Read)
	k.sum.Levels.add(other.sum.Levels)
	for i := range k.sum.Buckets {
		k.sum.Buckets[i].add(other.sum.Buckets[i])
	}
	k.sum.Numbers.Merge(other.sum.Numbers)
	for i := range k.tallies {
		k.tallies[i].merge(&other.tallies[i])
	}
}

func (c *LevelCounts) add(other LevelCounts) {
	for level, n := range other {
		c[level] += n
	}
}

// Result is what was counted, with the top values of each field.
func (k *Counter) Result(top int) Counted {
	result := k.sum
	for i, field := range k.count.By {
		t := &k.tallies[i]
		if t.patterns {
			t.join()
		}
		result.Fields = append(result.Fields, FieldCounts{field, t.top(top), t.without, t.lost})
	}
	return result
}
