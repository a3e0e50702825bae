package ingest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// MaxBlockBytes is the text of a block: large enough to compress well,
// small enough to read for one entry.
const MaxBlockBytes = 1 << 20

// A Place is the order of entries in a project: by event time, then by identity.
type Place struct {
	Time  Instant
	Batch [16]byte // of the batch's UUID
	Index int      // in the batch
}

// Compare orders places: negative when p is before q.
func (p Place) Compare(q Place) int {
	return cmp.Or(p.Time.Compare(q.Time), bytes.Compare(p.Batch[:], q.Batch[:]), cmp.Compare(p.Index, q.Index))
}

// A Stored is one entry as it is stored.
type Stored struct {
	Place
	ReceivedAt  time.Time
	Level       Severity
	Environment string // of the entry, else of its key
	Text        []byte // compact JSON, as it was accepted; nil: columns is read instead

	columns *Columns
	row     int // in columns
}

// find calls each with the values at a path until it returns true.
func (s *Stored) find(path jsonPath, each func(value []byte) bool) bool {
	if s.columns != nil {
		return s.columns.find(s.row, path, each)
	}
	return path.find(s.Text, each)
}

// A Header is the summary of a block by which a search skips blocks.
type Header struct {
	Min, Max     Instant // event times of its first and last entry
	Levels       SeveritySet
	Entries      LevelCounts
	Environments EnvironmentSet
	Words        Words
	Bytes        int // of text
}

// Include makes it the summary of the entries of another block as well. It keeps its words.
func (h *Header) Include(other *Header) {
	if other.Min.Compare(h.Min) < 0 {
		h.Min = other.Min
	}
	if other.Max.Compare(h.Max) > 0 {
		h.Max = other.Max
	}
	h.Levels |= other.Levels
	h.Entries.add(other.Entries)
	h.Environments |= other.Environments
	h.Bytes += other.Bytes
}

// LevelCounts is the number of entries of each level.
type LevelCounts [SeverityFatal + 1]int64

// Sum returns the number of entries of all levels.
func (c LevelCounts) Sum() (all int64) {
	for _, n := range c {
		all += n
	}
	return all
}

// ByName returns them by the names of the levels, without levels that have none.
func (c LevelCounts) ByName() map[string]int64 {
	names := map[string]int64{}
	for level, n := range c {
		if n > 0 {
			names[Severity(level).String()] = n //nolint:gosec // at most SeverityFatal
		}
	}
	return names
}

// A Block is some entries of one project in the order of their places.
type Block struct {
	Header
	List    []Stored
	Columns Columns

	words wordSet // those of the filter
}

// A Builder makes blocks of entries that come in any order.
type Builder struct {
	list         []Stored
	bytes        int
	levels       SeveritySet
	entries      LevelCounts
	environments EnvironmentSet
	content      content
}

// Add takes an entry. The Builder keeps entry.Text, which must not change.
func (b *Builder) Add(entry Stored) {
	b.list = append(b.list, entry)
	b.bytes += len(entry.Text)
	b.levels = b.levels.With(entry.Level)
	b.entries[entry.Level]++
	if n := len(b.list); n == 1 || b.list[n-2].Environment != entry.Environment {
		b.environments = b.environments.With(entry.Environment)
	}
	b.content.add(entry.Text)
}

// Full reports whether to build the block before the next Add.
func (b *Builder) Full() bool { return b.bytes >= MaxBlockBytes }

// Bytes returns the text added since the last block.
func (b *Builder) Bytes() int { return b.bytes }

// Len returns the number of entries added since the last block.
func (b *Builder) Len() int { return len(b.list) }

// Build returns a block of the added entries, at least one, and starts the next.
func (b *Builder) Build() Block {
	order := b.order()
	list := make([]Stored, len(b.list))
	for i, number := range order {
		list[i] = b.list[number]
	}
	block := Block{List: list, Header: Header{
		Min: list[0].Time, Max: list[len(list)-1].Time, Levels: b.levels, Entries: b.entries, Environments: b.environments,
		Words: Words{Filter: b.content.words.filter(), Lacks: b.content.lacks}, Bytes: b.bytes,
	}, Columns: b.content.columns.columns(list, order), words: b.content.words}
	*b = Builder{}
	return block
}

// order returns the numbers of the entries in the order of their places.
func (b *Builder) order() []int32 {
	order := make([]int32, len(b.list))
	for i := range order {
		order[i] = int32(i) //nolint:gosec // bounded by the bytes of a block
	}
	slices.SortFunc(order, func(x, y int32) int { return b.list[x].Compare(b.list[y].Place) })
	return order
}

// blockVersion is the first byte of a stored directory.
const blockVersion = 1

// errBlock means that a block's stored form is damaged.
var errBlock = errors.New("cannot read block: its form is damaged")

// AppendDirectory appends the stored form of all but the texts,
// uncompressed: a version, the environments, the batches, and of the entries
// each in turn: times, levels, environments, batches, indexes, lengths of the
// texts. Numbers are varints of encoding/binary.
func (b Block) AppendDirectory(dst []byte) []byte {
	environments, batches := newTable[string](), newTable[batchOf]()
	for _, entry := range b.List {
		environments.number(entry.Environment)
		batches.number(batchOf{entry.Batch, entry.ReceivedAt.UnixNano()})
	}
	dst = append(dst, blockVersion)
	dst = binary.AppendUvarint(dst, uint64(len(environments.list)))
	for _, environment := range environments.list {
		dst = appendSized(dst, environment)
	}
	dst = binary.AppendUvarint(dst, uint64(len(batches.list)))
	for _, batch := range batches.list {
		dst = append(dst, batch.id[:]...)
		dst = binary.AppendVarint(dst, batch.receivedNanos)
	}
	return b.appendEntries(dst, &environments, &batches)
}

// AppendTexts appends the stored form of the texts, uncompressed: one after the other.
func (b Block) AppendTexts(dst []byte) []byte {
	for _, entry := range b.List {
		dst = append(dst, entry.Text...)
	}
	return dst
}

type batchOf struct {
	id            [16]byte
	receivedNanos int64
}

func (b Block) appendEntries(dst []byte, environments *table[string], batches *table[batchOf]) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b.List)))
	dst = b.appendTimes(dst)
	for i := range b.List {
		dst = append(dst, byte(b.List[i].Level))
	}
	for i := range b.List {
		dst = binary.AppendUvarint(dst, environments.number(b.List[i].Environment))
	}
	for i := range b.List {
		entry := &b.List[i]
		dst = binary.AppendUvarint(dst, batches.number(batchOf{entry.Batch, entry.ReceivedAt.UnixNano()}))
	}
	for i := range b.List {
		dst = binary.AppendUvarint(dst, uint64(b.List[i].Index))
	}
	for i := range b.List {
		dst = binary.AppendUvarint(dst, uint64(len(b.List[i].Text)))
	}
	return dst
}

// appendTimes appends the seconds since the entry before and, in a unit that
// all have in common, the part of a second: in the same second since the
// entry before.
func (b Block) appendTimes(dst []byte) []byte {
	unit := uint32(nanosOfSecond)
	for i := range b.List {
		for b.List[i].Time.Nanos%unit != 0 {
			unit /= 1000
		}
	}
	dst = binary.AppendUvarint(dst, uint64(unit))
	var last Instant
	for i := range b.List {
		at := b.List[i].Time
		dst = binary.AppendVarint(dst, at.Seconds-last.Seconds)
		if at.Seconds != last.Seconds {
			last.Nanos = 0
		}
		dst = binary.AppendVarint(dst, (int64(at.Nanos)-int64(last.Nanos))/int64(unit))
		last = at
	}
	return dst
}

const nanosOfSecond = 1_000_000_000

// A table numbers distinct values in order of arrival; most equal the one before.
type table[T comparable] struct {
	at   map[T]uint64 // bounded by the entries of a block
	list []T
	last uint64 // the number given last
}

func newTable[T comparable]() table[T] { return table[T]{at: map[T]uint64{}} }

func (t *table[T]) number(value T) uint64 {
	if len(t.list) > 0 && t.list[t.last] == value {
		return t.last
	}
	number, known := t.at[value]
	if !known {
		number = uint64(len(t.list))
		t.at[value] = number
		t.list = append(t.list, value)
	}
	t.last = number
	return number
}

// ParseEntries reads the entries of a block back in order, into memory if they fit. Their texts share the memory of texts.
func ParseEntries(into []Stored, directory, texts []byte) ([]Stored, error) {
	entries, lengths, err := parseDirectory(into, directory)
	if err != nil {
		return nil, err
	}
	for i, length := range lengths {
		if length > len(texts) {
			return nil, errBlock
		}
		entries[i].Text, texts = texts[:length:length], texts[length:]
	}
	if len(texts) > 0 {
		return nil, errBlock
	}
	return entries, nil
}

// ParseDirectory reads the entries of a block back in order, without their texts.
func ParseDirectory(directory []byte) ([]Stored, error) {
	entries, _, err := parseDirectory(nil, directory)
	return entries, err
}

func parseDirectory(into []Stored, data []byte) (entries []Stored, lengths []int, err error) {
	r := blockReader{data: data}
	if version := r.byte(); version != blockVersion {
		return nil, nil, fmt.Errorf("cannot read block of version %d", version)
	}
	environments := make([]string, r.count())
	for i := range environments {
		environments[i] = string(r.bytes(r.count()))
	}
	batches := make([]batchOf, r.count())
	for i := range batches {
		copy(batches[i].id[:], r.bytes(16))
		batches[i].receivedNanos = r.varint()
	}
	entries, lengths = r.entries(into, environments, batches)
	if r.failed || len(r.data) > 0 {
		return nil, nil, errBlock
	}
	return entries, lengths, nil
}

func (r *blockReader) entries(into []Stored, environments []string, batches []batchOf) (entries []Stored, lengths []int) {
	many := r.count()
	entries = slices.Grow(into[:0], many)[:many]
	clear(entries)
	lengths = make([]int, len(entries))
	r.times(entries)
	for i := range entries {
		entries[i].Level = r.level()
	}
	for i := range entries {
		entries[i].Environment = itemAt(r, environments)
	}
	for i := range entries {
		batch := itemAt(r, batches)
		entries[i].Batch, entries[i].ReceivedAt = batch.id, time.Unix(0, batch.receivedNanos).UTC()
	}
	for i := range entries {
		entries[i].Index = r.int()
	}
	for i := range lengths {
		lengths[i] = r.int()
	}
	return entries, lengths
}

func (r *blockReader) times(entries []Stored) {
	unit := int64(r.int())
	var last Instant
	for i := range entries {
		seconds := r.varint()
		if seconds != 0 {
			last.Nanos = 0
		}
		nanos := int64(last.Nanos) + r.varint()*unit
		if nanos < 0 || nanos >= nanosOfSecond {
			r.failed, nanos = true, 0
		}
		last = Instant{last.Seconds + seconds, uint32(nanos)}
		entries[i].Time = last
	}
}

// itemAt reads the number of an item.
func itemAt[T any](r *blockReader, items []T) (item T) {
	number := r.uvarint()
	if number >= uint64(len(items)) {
		r.failed = true
		return item
	}
	return items[number]
}

// A blockReader reads from the front of data; after a failure it returns zeros.
type blockReader struct {
	data   []byte
	failed bool
}

func (r *blockReader) byte() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *blockReader) bytes(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.failed, r.data = true, nil
		return nil
	}
	taken := r.data[:n:n]
	r.data = r.data[n:]
	return taken
}

func (r *blockReader) uvarint() uint64 {
	if len(r.data) > 0 && r.data[0] < 0x80 { // as most are
		small := r.data[0]
		r.data = r.data[1:]
		return uint64(small)
	}
	value, size := binary.Uvarint(r.data)
	r.bytes(max(size, 0))
	r.failed = r.failed || size <= 0
	return value
}

func (r *blockReader) varint() int64 {
	value := r.uvarint()
	return int64(value>>1) ^ -int64(value&1) //nolint:gosec // as encoding/binary does
}

// count reads the number of following items, each of at least one byte:
// a larger number means damage.
func (r *blockReader) count() int {
	value := r.uvarint()
	if value > uint64(len(r.data)) {
		r.failed, r.data = true, nil
		return 0
	}
	return int(value)
}

func (r *blockReader) level() Severity {
	level := Severity(r.byte())
	if level > SeverityFatal {
		r.failed = true
		return SeverityNone
	}
	return level
}

func (r *blockReader) int() int {
	value := r.uvarint()
	if value > math.MaxInt32 {
		r.failed = true
		return 0
	}
	return int(value)
}

// A Span is a range of event times whose entries share blocks. Entries
// within an hour of their receipt are in spans of one hour, all others in
// one of a few classes of distance, ever wider: so odd times neither
// widen ordinary blocks nor make many blocks.
type Span struct {
	class int8  // 0: near; further away in the future: 1, 2, …; in the past: -1, -2, …
	hour  int64 // of the near ones, since 1970
}

const (
	secondsOfHour = 3600
	secondsOfDay  = 24 * secondsOfHour
	secondsOfYear = 366 * secondsOfDay
)

// distances are where the classes end, in seconds; the last one has no end.
var distances = [...]int64{secondsOfHour, secondsOfDay, 32 * secondsOfDay, secondsOfYear, 10 * secondsOfYear, 100 * secondsOfYear, 1000 * secondsOfYear}

// MaxSpans is the most spans of one request: each class in both
// directions, and the near hours.
const MaxSpans = 2*len(distances) + 3

// SpanOf is the span of an entry by event time and receipt.
func SpanOf(event Instant, received time.Time) Span {
	away := event.Seconds - received.Unix()
	class := int8(0)
	for class < int8(len(distances)) && max(away, -away) > distances[class] {
		class++
	}
	if class == 0 {
		return Span{hour: floorDiv(event.Seconds, secondsOfHour)}
	}
	return Span{class: class * int8(cmp.Compare(away, 0))} //nolint:gosec // -1 or 1
}

// Rounded widens the times of a day's entries to bounds, in
// seconds, that most blocks of that day share.
func Rounded(first, last Instant, day time.Time) (from, to int64) {
	return day.Unix() - classEnd(day.Unix()-first.Seconds), day.Unix() + secondsOfDay + classEnd(last.Seconds-day.Unix()-secondsOfDay)
}

// classEnd is the end of the class of distances with away; one
// more is beyond the last.
func classEnd(away int64) int64 {
	for _, end := range distances {
		if away <= end {
			return end
		}
	}
	return math.MaxInt64 / 4
}

// floorDiv divides, rounded towards the past.
func floorDiv(a, b int64) int64 {
	if a < 0 {
		return (a - b + 1) / b
	}
	return a / b
}

// An EnvironmentSet is the environments of a block's entries. Each is
// one of 64 bits, so it may seem to hold others too. The empty set is
// of an old block, which may hold any.
type EnvironmentSet uint64

// With returns the set with one more.
func (s EnvironmentSet) With(environment string) EnvironmentSet {
	return s | 1<<(hashWord([]byte(environment))%64)
}

// MayHold reports whether an entry of the environment may be there;
// empty: of any.
func (s EnvironmentSet) MayHold(environment string) bool {
	return environment == "" || s == 0 || s&EnvironmentSet(0).With(environment) != 0
}
