package ingest_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

// small is the header of a block received at a time with so much text;
// its entries are of that second.
func small(id int, at time.Time, size int) ingest.Candidate {
	c := ingest.Candidate{Ref: ingest.Ref{ReceivedAt: at}, Header: ingest.Header{Min: ingest.InstantOf(at), Max: ingest.InstantOf(at), Bytes: size}}
	binary.BigEndian.PutUint64(c.ID[:], uint64(id)) //nolint:gosec // a test's
	return c
}

// merge returns the blocks after all merges and how much text was written.
func merge(blocks []ingest.Candidate, dayEnds, now time.Time) (left []ingest.Candidate, written int) {
	for {
		var candidates []ingest.Candidate
		for _, b := range blocks {
			if b.Bytes < ingest.SmallBlockBytes {
				candidates = append(candidates, b)
			}
		}
		runs, _ := ingest.Merges(candidates, dayEnds, now)
		if len(runs) == 0 {
			return blocks, written
		}
		for _, run := range runs {
			whole := run[len(run)-1]
			whole.Min, whole.Bytes = run[0].Min, 0
			for _, taken := range run {
				whole.Bytes += taken.Bytes
				blocks = slices.DeleteFunc(blocks, func(b ingest.Candidate) bool { return b.ID == taken.ID })
			}
			written += whole.Bytes
			blocks = append(blocks, whole)
		}
		slices.SortStableFunc(blocks, func(a, b ingest.Candidate) int { return a.ReceivedAt.Compare(b.ReceivedAt) })
	}
}

// Small blocks become few, and each entry is rewritten a few times,
// whatever their size.
func TestATrickleIsWrittenAgainAFewTimes(t *testing.T) {
	begins := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	ends := begins.AddDate(0, 0, 1)
	for _, size := range []int{65, 250, 3000, 60_000} {
		for _, every := range []int{1, 40, 900} { // blocks between two merges
			random, blocks, kept, written := rand.New(rand.NewPCG(1, 1)), []ingest.Candidate(nil), 0, 0
			for i := range 4000 {
				at := begins.Add(time.Duration(i) * time.Second)
				b := small(i, at, size/2+random.IntN(size))
				blocks, kept = append(blocks, b), kept+b.Bytes
				if i%every == 0 {
					var wrote int
					blocks, wrote = merge(blocks, ends, at)
					written += wrote
				}
			}
			blocks, wrote := merge(blocks, ends, ends.Add(3*time.Hour))
			amplification := float64(written+wrote) / float64(kept)
			if amplification > 4 || len(blocks) > 2+2*kept/ingest.SmallBlockBytes {
				t.Errorf("%d bytes, looked at every %d: %d blocks of %d bytes, written again %.1f times", size, every, len(blocks), kept, amplification)
			}
		}
	}
}

// Only blocks of one span are merged: unusual years and blocks without
// a span stay apart.
func TestSpansAreMergedApart(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var blocks []ingest.Candidate
	for i := range 64 {
		b := small(i, noon.Add(time.Duration(i)*time.Second), 100)
		switch i % 4 {
		case 1: // in the next hour
			b.Min.Seconds, b.Max.Seconds = b.Min.Seconds+3600, b.Max.Seconds+3600
		case 2: // of the year 1600
			b.Min.Seconds, b.Max.Seconds = -11_676_096_000, -11_676_096_000
		case 3: // over many hours
			b.Min.Seconds -= 9 * 3600
		}
		blocks = append(blocks, b)
	}
	runs, next := ingest.Merges(blocks, noon.Add(12*time.Hour), noon.Add(time.Minute))
	if len(runs) != 3 || !next.Equal(noon.Add(2*time.Hour+5*time.Minute)) {
		t.Errorf("%d runs, next at %v", len(runs), next)
	}
	for _, run := range runs {
		for _, b := range run {
			if b.ID[7]%4 != run[0].ID[7]%4 || b.ID[7]%4 == 3 {
				t.Errorf("block %d is merged with block %d", b.ID[7], run[0].ID[7])
			}
		}
	}
}

// Late entries of a closed span don't rewrite a large block for every few bytes.
func TestALateBlockWritesLittleAgain(t *testing.T) {
	begins := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var blocks []ingest.Candidate
	kept, written := 0, 0
	for i := range 500 {
		blocks, kept = append(blocks, small(i, begins.Add(time.Duration(i)*time.Second), 200)), kept+200
		var wrote int
		blocks, wrote = merge(blocks, begins.AddDate(0, 0, 1), begins.AddDate(0, 0, 3))
		written += wrote
	}
	if len(blocks) > 10 || written > 10*kept {
		t.Errorf("%d blocks, written again %d times", len(blocks), written/kept)
	}
}

// A merge keeps all entries in order, with the filters of all.
func TestMergedBlocksHoldTheSame(t *testing.T) {
	var builder ingest.Builder
	var all, entries []ingest.Stored
	random := rand.New(rand.NewPCG(2, 2))
	for i := range 3000 {
		entry, message := someStored(random)
		entry.Index = i
		entry.Text = fmt.Appendf(nil, `{"timestamp":"%s","level":"info","message":%q,"pad":%q}`, entry.Time, message, strings.Repeat("x", random.IntN(1500)))
		all = append(all, entry)
		builder.Add(entry)
		if random.IntN(20) == 0 {
			entries = append(entries, read(t, builder.Build())...)
		}
	}
	if builder.Len() > 0 {
		entries = append(entries, read(t, builder.Build())...)
	}
	merged := ingest.Merge(entries)
	if len(merged) != 3 {
		t.Fatalf("%d blocks", len(merged))
	}
	slices.SortFunc(all, func(a, b ingest.Stored) int { return a.Compare(b.Place) })
	for _, block := range merged {
		for _, got := range read(t, block) {
			if !bytes.Equal(got.Text, all[0].Text) || got.Place != all[0].Place || got.Level != all[0].Level || got.Environment != all[0].Environment {
				t.Fatalf("got %v %s, want %v %s", got.Place, got.Text, all[0].Place, all[0].Text)
			}
			all = all[1:]
		}
		if !query("checkout zürich").MayMatch(&block.Header) {
			t.Error("a word is missing in the filter")
		}
	}
	if len(all) > 0 {
		t.Errorf("%d entries are lost", len(all))
	}
}

func read(t *testing.T, block ingest.Block) []ingest.Stored {
	t.Helper()
	entries, err := ingest.ParseEntries(nil, block.AppendDirectory(nil), block.AppendTexts(nil))
	testenv.Must(t, err)
	return entries
}
