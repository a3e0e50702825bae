package ingest

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weirlog/weir/shared/contract/entryfield"
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
	const aside, value, numbers = 256 << 10, maxValueText + 144, 2 * 8 * maxBins
	field := int64(2 * maxTracked * value)
	if c.Split() {
		field = 2 * maxSplit * (value + numbers + 8*c.Buckets())
	}
	return MaxCounters * (aside + int64(len(c.By))*field)
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

// A Field is what entries are counted by.
type Field struct {
	name  string
	paths []jsonPath // empty: it is in no text
}

// FieldProject is the name of the field that is the entry's project.
const FieldProject = "project"

// Split reports whether each value has buckets or numbers of its own.
func (c *Count) Split() bool { return c.Every > 0 || c.Of.name != "" }

// ParseField reads the name of a field: one of the query language, or project.
func ParseField(name string) (Field, error) {
	switch {
	case strings.Trim(name, "-") != name || strings.ContainsAny(name, `*:()"`) || strings.ContainsFunc(name, unicode.IsSpace) || name == "":
		return Field{}, fmt.Errorf("%q is no name of a field", name)
	case strings.Count(name, ".") > maxPathDots:
		return Field{}, fmt.Errorf("%q has more than %d dots", name, maxPathDots)
	case name == entryfield.Level, name == entryfield.Environment, name == FieldProject:
		return Field{name: name}, nil
	}
	return Field{name, pathsOf(name)}, nil
}

// String returns its name.
func (f Field) String() string { return f.name }

// Paths are where its values are in an entry's text, names joined by dots, in the
// order in which they count; none where they are not in the text.
func (f Field) Paths() (paths []string) {
	for _, path := range f.paths {
		paths = append(paths, string(path))
	}
	return paths
}

// Value returns the first value of an entry there; "" for none.
func (f Field) Value(entry *Stored, project string) (first string) {
	f.values(entry, project, func(value []byte) bool {
		first = string(value)
		return true
	})
	return first
}

// values calls each with the values of an entry there, until it returns true.
func (f Field) values(entry *Stored, project string, each func(value []byte) bool) {
	switch {
	case f.name == entryfield.Level:
		each([]byte(entry.Level.String()))
	case f.name == entryfield.Environment && entry.Environment == "":
	case f.name == entryfield.Environment:
		each([]byte(entry.Environment))
	case f.name == FieldProject:
		each([]byte(project))
	default:
		f.scalars(entry.Text, func(value []byte) bool {
			if value[0] == '"' {
				value = decodedString(value)
			}
			return each(value)
		})
	}
}

// scalars calls each with the strings, numbers and truth values at the
// first of its paths that has some.
func (f Field) scalars(text []byte, each func(value []byte) bool) {
	found := false
	for _, path := range f.paths {
		if found {
			return
		}
		path.find(text, func(value []byte) bool {
			if value[0] == '{' || value[0] == '[' || string(value) == "null" {
				return false
			}
			found = true
			return each(value)
		})
	}
}

// A Reading is how much of a block a count has to read.
type Reading int

// From nothing to all.
const (
	ReadNothing Reading = iota
	ReadHeader
	ReadDirectory
	ReadTexts
)

// Reads returns what the count has to read of a block.
func (c *Count) Reads(block *Candidate) Reading {
	if !c.Search.MayFind(block) {
		return ReadNothing
	}
	reading := c.reads()
	within := (c.Search.From == nil || block.Min.Compare(*c.Search.From) >= 0) && (c.Search.To == nil || block.Max.Compare(*c.Search.To) < 0)
	if !within || c.Search.Environment != "" || c.bucket(block.Min) != c.bucket(block.Max) {
		reading = max(reading, ReadDirectory)
	}
	return reading
}

// Groups reports whether all that it needs of texts are the values of By.
func (c *Count) Groups() bool { return max(c.Search.Query.reads(), c.Of.reads()) < ReadTexts }

// ReadsTexts reports whether a count needs more of an entry than its time,
// level, environment and project.
func (c *Count) ReadsTexts() bool { return c.reads() == ReadTexts }

func (c *Count) reads() Reading {
	reading := max(c.Search.Query.reads(), c.Of.reads())
	for _, field := range c.By {
		reading = max(reading, field.reads())
	}
	return reading
}

func (f Field) reads() Reading {
	switch {
	case len(f.paths) > 0:
		return ReadTexts
	case f.name == entryfield.Environment:
		return ReadDirectory
	}
	return ReadHeader
}

// reads returns what a query needs to know of a block's entries.
func (q Query) reads() Reading {
	if q.root == nil {
		return ReadHeader
	}
	return readingOf(q.root)
}

func readingOf(c condition) Reading {
	parts := func(list []condition) (reading Reading) {
		for _, part := range list {
			reading = max(reading, readingOf(part))
		}
		return reading
	}
	switch c := c.(type) {
	case levels:
		return ReadHeader
	case inEnvironment:
		return ReadDirectory
	case all:
		return parts(c)
	case either:
		return parts(c)
	case negation:
		return readingOf(c.of)
	}
	return ReadTexts
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
}

// A Counter counts entries for a Count. Several may share the work.
type Counter struct {
	count   *Count
	sum     Counted
	tallies []tally
	values  [][]byte // of the last entry and field
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
		k.tallies[i] = newTally(c)
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

// Add counts those entries of a block that match.
func (k *Counter) Add(entries []Stored, project string) {
	for i := range entries {
		if k.count.Search.Matches(&entries[i]) {
			k.add(&entries[i], project, 1)
		}
	}
}

// add counts a number of entries that are alike.
func (k *Counter) add(entry *Stored, project string, entries int64) {
	bucket := k.count.bucket(entry.Time)
	k.sum.Levels[entry.Level] += entries
	if k.sum.Buckets != nil {
		k.sum.Buckets[bucket][entry.Level] += entries
	}
	numbers := k.numbers(entry)
	for _, number := range numbers {
		k.sum.Numbers.Add(number)
	}
	for i, field := range k.count.By {
		values := k.values[:0]
		field.values(entry, project, func(value []byte) bool {
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
}

// numbers are those of an entry that are to be summed up.
func (k *Counter) numbers(entry *Stored) (numbers []float64) {
	if k.sum.Numbers == nil {
		return nil
	}
	k.count.Of.scalars(entry.Text, func(value []byte) bool {
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
		result.Fields = append(result.Fields, FieldCounts{field, t.top(top), t.without, t.lost})
	}
	return result
}

// A tally counts the values of a field. It keeps the frequent ones
// (Misra and Gries, "Finding repeated elements", 1982, with decrements for
// many values at once; Agarwal et al., "Mergeable summaries", 2012).
type tally struct {
	values  map[string]*tracked // bounded by trim: fewer than twice most
	most    int
	buckets int64
	numbers bool
	without int64
	lost    int64 // no value that is not in values has more entries
}

// tracked is a value, counted since it was last found to be new.
type tracked struct {
	ValueCount
	weight int64 // entries, less what makes room for others
}

func newTally(c *Count) tally {
	t := tally{values: map[string]*tracked{}, most: maxTracked, numbers: c.Of.name != ""}
	if c.Every > 0 {
		t.buckets = c.Buckets()
	}
	if c.Split() {
		t.most = maxSplit
	}
	return t
}

func (t *tally) add(value []byte, entries, bucket int64, numbers []float64) {
	v := t.values[string(value)]
	if v == nil {
		v = t.track(bytes.Clone(value))
	}
	v.Entries += entries
	v.weight += entries
	if v.Buckets != nil {
		v.Buckets[bucket] += entries
	}
	for _, number := range numbers {
		v.Numbers.Add(number)
	}
}

// track begins to count a value, and makes room for it.
func (t *tally) track(value []byte) *tracked {
	t.trim(2*t.most - 1)
	v := &tracked{ValueCount: ValueCount{Value: string(value)}}
	if t.buckets > 0 {
		v.Buckets = make([]int64, t.buckets)
	}
	if t.numbers {
		v.Numbers = new(Numbers)
	}
	t.values[v.Value] = v
	return v
}

// trim takes from all weights what leaves at most t.most of the values,
// where there are more than some.
func (t *tally) trim(some int) {
	if len(t.values) <= some {
		return
	}
	weights := make([]int64, 0, len(t.values))
	for _, v := range t.values {
		weights = append(weights, v.weight)
	}
	slices.Sort(weights)
	least := weights[len(weights)-t.most-1]
	t.lost += least
	for value, v := range t.values {
		if v.weight -= least; v.weight <= 0 {
			delete(t.values, value)
		}
	}
}

func (t *tally) merge(other *tally) {
	t.without += other.without
	t.lost += other.lost
	for value, theirs := range other.values {
		ours := t.values[value]
		if ours == nil {
			t.values[value] = theirs
			continue
		}
		ours.Entries += theirs.Entries
		ours.weight += theirs.weight
		for i, n := range theirs.Buckets {
			ours.Buckets[i] += n
		}
		ours.Numbers.Merge(theirs.Numbers)
	}
	t.trim(2*t.most - 1)
}

func (t *tally) top(most int) []ValueCount {
	var list []ValueCount
	for _, v := range slices.SortedFunc(maps.Values(t.values), moreFrequent) {
		if len(list) == most {
			break
		}
		list = append(list, v.ValueCount)
	}
	return list
}

func moreFrequent(a, b *tracked) int {
	if a.Entries != b.Entries {
		return int(b.Entries - a.Entries)
	}
	return strings.Compare(a.Value, b.Value)
}
