package ingest

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// SmallBlockBytes is the least text of a block that is not merged. The
// index small_blocks holds smaller ones.
const SmallBlockBytes = MaxBlockBytes / 16

// minMergedBlocks is the least number of blocks of a tier that are
// merged, and the ratio of the tiers' sizes. So each merge lifts
// entries into the next tier, and an entry is rewritten at most once
// for each tier.
const minMergedBlocks = 16

// tierOf returns the tier of a small block: below 256 bytes of text,
// below 4 KiB, or above.
func tierOf(bytes int) int { return max(1, (bits.Len(uint(bytes))-1)/4) } //nolint:gosec // a size

// closedAfter is how long after its last possible receipt a span counts
// as closed: entries are under way for a while.
const closedAfter = 5 * time.Minute

// closes returns when a span gets no more entries received on a day.
func (s Span) closes(dayEnds time.Time) time.Time {
	if s.class != 0 {
		return dayEnds.Add(closedAfter)
	}
	return time.Unix((s.hour+2)*secondsOfHour, 0).UTC().Add(closedAfter)
}

// span returns the span of a block's entries, by the last event and the
// last receipt.
func (c *Candidate) span() (s Span, ok bool) {
	s = SpanOf(c.Max, c.ReceivedAt)
	return s, s.class != 0 || floorDiv(c.Min.Seconds, secondsOfHour) == s.hour // old blocks may span many hours
}

// Merges returns which runs of a project's small blocks of a day, in
// order of receipt, to merge, each into as few blocks as possible, and
// when to look again; zero: after new blocks.
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
			runs = append(runs, closedRuns(spans[span])...)
			continue
		}
		if len(spans[span]) > 1 && (next.IsZero() || closes.Before(next)) {
			next = closes
		}
		runs = append(runs, tierRuns(spans[span])...)
	}
	return runs, next
}

// tierRuns returns the runs of blocks of one tier to merge while more come.
func tierRuns(blocks []Candidate) (runs [][]Candidate) {
	tiers := map[int][]Candidate{}
	for _, b := range blocks {
		tiers[tierOf(b.Bytes)] = append(tiers[tierOf(b.Bytes)], b)
	}
	for tier := tierOf(0); tier <= tierOf(SmallBlockBytes-1); tier++ {
		for _, run := range cut(tiers[tier]) {
			if len(run) >= minMergedBlocks {
				runs = append(runs, run)
			}
		}
	}
	return runs
}

// closedRuns returns the runs of the remaining blocks of a closed span.
// A run is merged only if it at least doubles its largest block, so
// late entries don't rewrite a block for every few bytes.
func closedRuns(blocks []Candidate) (runs [][]Candidate) {
	for _, run := range cut(withoutLarge(blocks)) {
		if len(run) > 1 {
			runs = append(runs, run)
		}
	}
	return runs
}

// withoutLarge leaves out blocks with more text than all smaller ones together.
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

// Merge makes one block of the entries of many, or a second one beyond
// its size. It keeps their texts.
func Merge(entries []Stored) ([]Block, error) {
	slices.SortFunc(entries, func(x, y Stored) int { return x.Compare(y.Place) })
	reader, builder := NewEntryReader(), &Builder{}
	var blocks []Block
	for i := range entries {
		read, err := reader.Read(entries[i].Text)
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
