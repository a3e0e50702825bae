package ingest_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirlog/weir/ingest"
)

// A shelf is blocks in memory. Each page draws a new share.
type shelf struct {
	list    []ingest.Candidate // in the order of the search, behind Start.Seen
	entries map[[16]byte][]ingest.Stored
	share   int // how many blocks may be read
	looked  int
	reads   int
}

func newShelf(list []ingest.Block, search *ingest.Search, share int) *shelf {
	s := &shelf{entries: map[[16]byte][]ingest.Stored{}, share: share}
	for i, block := range list {
		c := ingest.Candidate{Header: block.Header, Ref: ingest.Ref{Project: "prj"}}
		binary.BigEndian.PutUint64(c.ID[:], uint64(i)*7919%1009) // in random order
		s.entries[c.ID] = block.List
		if seen := search.Start.Seen; seen == nil || search.Sooner(*seen, search.Key(&c)) {
			s.list = append(s.list, c)
		}
	}
	slices.SortFunc(s.list, func(a, b ingest.Candidate) int {
		if search.Sooner(search.Key(&a), search.Key(&b)) {
			return -1
		}
		return 1
	})
	return s
}

func (s *shelf) Next() (*ingest.Candidate, error) {
	s.looked++
	if len(s.list) == 0 {
		return nil, nil
	}
	next := s.list[0]
	s.list = s.list[1:]
	return &next, nil
}

func (s *shelf) Read(block ingest.Ref) ([]ingest.Stored, error) {
	s.reads++
	return s.entries[block.ID], nil
}

func (s *shelf) Spent() bool { return s.looked > s.share }

// A paged search finds exactly the entries that a filter over all
// finds, once and in order: for any criteria, page size, overlap of
// blocks and share.
func TestSearchFindsWhatAFilterFinds(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		all, list := blocks(random, 10+random.IntN(150))
		search := someSearch(random)
		want := naive(all, search)
		got := pageThrough(t, list, search, random)
		if !slices.EqualFunc(got, want, func(a, b ingest.Stored) bool { return a.Place == b.Place }) {
			t.Fatalf("seed %d: found %d entries, want %d: search %+v", seed, len(got), len(want), search)
		}
	}
}

func someSearch(random *rand.Rand) ingest.Search {
	search := ingest.Search{Limit: 1 + random.IntN(1+random.IntN(60)), MaxBytes: 20 + random.IntN(2000), OldestFirst: random.IntN(2) == 0}
	if random.IntN(2) == 0 {
		search.From = &ingest.Instant{Seconds: random.Int64N(40) - 20}
	}
	if random.IntN(2) == 0 {
		search.To = &ingest.Instant{Seconds: random.Int64N(40) - 20, Nanos: 1}
	}
	if random.IntN(3) == 0 {
		search.Levels = ingest.SeveritySet(0).With(ingest.SeverityError).With(ingest.SeverityWarn)
	}
	if random.IntN(3) == 0 {
		search.Environment = "prod"
	}
	if random.IntN(3) == 0 {
		search.Query = query(vocabulary[random.IntN(len(vocabulary))])
	}
	return search
}

func naive(all []ingest.Stored, search ingest.Search) []ingest.Stored {
	wanted := slices.DeleteFunc(slices.Clone(all), func(e ingest.Stored) bool { return !search.Matches(&e) })
	slices.SortFunc(wanted, func(a, b ingest.Stored) int {
		if search.OldestFirst {
			return a.Compare(b.Place)
		}
		return b.Compare(a.Place)
	})
	return wanted
}

// Overlapping blocks are read once each, except those that a page has
// to read again, over any number of pages, at both ends of the window.
func TestAWindowPassesOverEachBlockOnce(t *testing.T) {
	const many, share = 200, 50
	var list []ingest.Block
	for i := range int64(many) {
		var builder ingest.Builder
		for j, second := range []int64{-i, 1800, 3600 + i} {
			place := ingest.Place{Time: ingest.Instant{Seconds: second}, Index: int(i)*3 + j}
			if second == 1800 && i > 0 {
				place.Time.Seconds = 1900 // outside the window
			}
			builder.Add(ingest.Stored{Place: place, Level: ingest.SeverityInfo})
		}
		list = append(list, builder.Build())
	}
	for _, oldestFirst := range []bool{false, true} {
		search := ingest.Search{Limit: 10, From: &ingest.Instant{Seconds: 1800}, To: &ingest.Instant{Seconds: 1801}, OldestFirst: oldestFirst}
		found, reads, pages := 0, 0, 0
		for next := (&ingest.Position{}); next != nil && pages < 2*many; pages++ {
			search.Start = *next
			result, on := page(t, list, search, share)
			found, reads, next = found+len(result.Found), reads+on.reads, result.Next
		}
		if found != 1 || reads > many+pages || pages > many/share+1 {
			t.Errorf("oldest first %t: %d entries after %d pages that looked into %d of %d blocks", oldestFirst, found, pages, reads, many)
		}
	}
}

// A position with blocks of other projects shows nothing of them.
func TestLeadsOfOtherProjectsAreLeftOut(t *testing.T) {
	var builder ingest.Builder
	builder.Add(ingest.Stored{Level: ingest.SeverityInfo})
	block := builder.Build()
	after := ingest.Place{Time: ingest.Instant{Seconds: 1}}
	search := ingest.Search{Limit: 1, Start: ingest.Position{After: &after, Seen: &ingest.Key{}}}
	on := newShelf([]ingest.Block{block}, &search, 9)
	for project, want := range map[string]int{"prj": 1, "": 1, "prj_own": 0} {
		search.Project, search.Start.Leads = project, []ingest.Ref{{Project: "prj"}}
		if result, err := search.Find(on); err != nil || len(result.Found) != want {
			t.Errorf("in project %q: %d entries, %v; want %d", project, len(result.Found), err, want)
		}
	}
	search.Project, search.Hidden = "", map[string]bool{"prj": true}
	if result, err := search.Find(on); err != nil || len(result.Found) != 0 {
		t.Errorf("of a project that was deleted since: %d entries, %v", len(result.Found), err)
	}
}

// pageThrough reads page after page, each with another share.
func pageThrough(t *testing.T, list []ingest.Block, search ingest.Search, random *rand.Rand) (found []ingest.Stored) {
	t.Helper()
	most := 1 + random.IntN(40)
	for pages := 0; ; pages++ {
		share := random.IntN(most)
		result, on := page(t, list, search, share)
		if most := max(1, share) + len(search.Start.Leads); on.reads > most {
			t.Fatalf("a page with a share of %d looked into %d blocks", share, on.reads)
		}
		for _, f := range result.Found {
			found = append(found, f.Stored)
		}
		if result.Next == nil {
			return found
		}
		if pages > 20_000 {
			t.Fatal("the pages never end")
		}
		search.Start = *result.Next
	}
}

func page(t *testing.T, list []ingest.Block, search ingest.Search, share int) (ingest.Result, *shelf) {
	t.Helper()
	on := newShelf(list, &search, share)
	result, err := search.Find(on)
	if err != nil || len(result.Found) > search.Limit {
		t.Fatalf("a page of %d entries: %v", len(result.Found), err)
	}
	return result, on
}

// A page of large entries ends at its size with a cursor, and holds its
// texts but not their blocks.
func TestAPageEndsAtItsBytes(t *testing.T) {
	search := ingest.Search{Limit: 1000}
	page := ingest.NewPage(&search)
	whole := make([]byte, 200*500<<10)
	entries := make([]ingest.Stored, 200)
	for i := range entries {
		entries[i] = ingest.Stored{Place: ingest.Place{Index: i}, Text: whole[i*500<<10 : (i+1)*500<<10]}
	}
	page.Offer(entries, ingest.Ref{})
	found, next := page.Result()
	size := 0
	for _, f := range found {
		size += cap(f.Text)
	}
	if len(found) != ingest.MaxPageBytes/(500<<10) || next == nil || size > ingest.MaxPageBytes*5/4 || found[0].Index != 199 {
		t.Errorf("%d entries that hold %d bytes, next %v", len(found), size, next)
	}
	clear(whole)
	whole[199*500<<10] = 1
	if found[0].Text[0] != 0 {
		t.Error("a text shares the memory of its block")
	}
}

// Blocks of hidden projects are skipped, whatever the criteria.
func TestHiddenProjectsAreLeftOut(t *testing.T) {
	search := ingest.Search{Hidden: map[string]bool{"gone": true}}
	for project, want := range map[string]bool{"gone": false, "kept": true} {
		block := ingest.Candidate{Ref: ingest.Ref{Project: project}}
		if got := search.MayFind(&block); got != want {
			t.Errorf("%s may be found: %t", project, got)
		}
	}
}
