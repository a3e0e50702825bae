package ingest

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// SmallBlockBytes is how much text a block has at least to be left as it is.
// The index small_blocks holds those that have less.
const SmallBlockBytes = MaxBlockBytes / 16

// mergedAtOnce is how many blocks of a tier are merged at least, and by how
// much tiers differ in size: so each merge lifts entries into the next tier,
// and none is written again more often than there are tiers.
const mergedAtOnce = 16

// tierOf is the tier of a small block: below 256 bytes of text,
// below 4 KiB, or above.
func tierOf(bytes int) int { return max(1, (bits.Len(uint(bytes))-1)/4) } //nolint:gosec // a size

// closedAfter is how long after its last entry can have been received a span
// counts as closed: entries are on their way for a while.
const closedAfter = 5 * time.Minute

// closes is when a span gets no more entries of those that were received on a day.
func (s Span) closes(dayEnds time.Time) time.Time {
	if s.class != 0 {
		return dayEnds.Add(closedAfter)
	}
	return time.Unix((s.hour+2)*secondsOfHour, 0).UTC().Add(closedAfter)
}

// span is where a block's entries lie, by the last of them and by when the last
// of them was received: what holds for each entry holds for these.
func (c *Candidate) span() (s Span, ok bool) {
	s = SpanOf(c.Max, c.ReceivedAt)
	return s, s.class != 0 || floorDiv(c.Min.Seconds, secondsOfHour) == s.hour // blocks of old may reach over many hours
}

// Merges decides which of the small blocks of a project and day, in the order
// of their receipt, are to be merged, each run into one block or as few as hold
// it, and when the next may be; zero: not before there are more blocks.
func Merges(small []Candidate, dayEnds, now time.Time) (runs [][]Candidate, next time.Time) {
	spans := map[Span][]Candidate{}
	var order []Span
	for i := range small {
		span, ok := small[i].span()
		if !ok {
			continue
		}
		if spans[span] == nil {
			order = append(order, span)
		}
		spans[span] = append(spans[span], small[i])
	}
	for _, span := range order {
		closes := span.closes(dayEnds)
		if !closes.After(now) {
			runs = append(runs, closing(spans[span])...)
			continue
		}
		if len(spans[span]) > 1 && (next.IsZero() || closes.Before(next)) {
			next = closes
		}
		runs = append(runs, lifting(spans[span])...)
	}
	return runs, next
}

// lifting are the runs of blocks of one tier that are worth to
// be merged while more come.
func lifting(blocks []Candidate) (runs [][]Candidate) {
	tiers := map[int][]Candidate{}
	for _, b := range blocks {
		tiers[tierOf(b.Bytes)] = append(tiers[tierOf(b.Bytes)], b)
	}
	for tier := tierOf(0); tier <= tierOf(SmallBlockBytes-1); tier++ {
		for _, run := range cut(tiers[tier]) {
			if len(run) >= mergedAtOnce {
				runs = append(runs, run)
			}
		}
	}
	return runs
}

// closing are the runs of whatever is left in a span that gets no
// more: in one that gets some all the same, none of which at least
// doubles the blocks that it takes stays as it is, so that a block
// isn't written again for every few bytes.
func closing(blocks []Candidate) (runs [][]Candidate) {
	for _, run := range cut(withoutLarge(blocks)) {
		if len(run) > 1 {
			runs = append(runs, run)
		}
	}
	return runs
}

// withoutLarge leaves out those that have more text than all smaller ones together.
func withoutLarge(blocks []Candidate) []Candidate {
	sizes, total := make([]int, 0, len(blocks)), 0
	for i := range blocks {
		sizes, total = append(sizes, blocks[i].Bytes), total+blocks[i].Bytes
	}
	slices.Sort(sizes)
	most := len(sizes)
	for most > 0 && 2*sizes[most-1] > total {
		most--
		total -= sizes[most]
	}
	if most == 0 {
		return nil
	}
	limit := sizes[most-1]
	return slices.DeleteFunc(slices.Clone(blocks), func(c Candidate) bool { return c.Bytes > limit })
}

// cut divides blocks into runs that fill a large one each.
func cut(blocks []Candidate) (runs [][]Candidate) {
	first, size := 0, 0
	for i := range blocks {
		if size += blocks[i].Bytes; size >= MaxBlockBytes {
			runs = append(runs, blocks[first:i+1])
			first, size = i+1, 0
		}
	}
	if first < len(blocks) {
		runs = append(runs, blocks[first:])
	}
	return runs
}

// Merge makes one block of the entries of many, or a second one of what goes
// beyond its size. It keeps their texts.
func Merge(entries []Stored) ([]Block, error) {
	slices.SortFunc(entries, func(x, y Stored) int { return x.Compare(y.Place) })
	parser, builder := NewParser(DefaultLimits()), &Builder{}
	var blocks []Block
	for i := range entries {
		read, err := parser.ReadEntry(entries[i].Text)
		if err != nil {
			return nil, fmt.Errorf("cannot read the entry at %v: %w", entries[i].Time, err)
		}
		builder.Add(entries[i], read.Message)
		if builder.Full() {
			blocks = append(blocks, builder.Build())
		}
	}
	if builder.Len() > 0 {
		blocks = append(blocks, builder.Build())
	}
	return blocks, nil
}
