package ingest_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

// Summaries count what texts count, or say that they can't tell.
func TestSummariesCountWhatTextsCount(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	bySummary := map[string]int{}
	for range 10_000 {
		blocks, header := someBundle(t, random)
		count := ingest.Count{Search: ingest.Search{Query: query(someNode(random, random.IntN(3)).text)}}
		if random.IntN(2) == 0 {
			count.Search.Query = query([]string{"", "level:error", "-level:info"}[random.IntN(3)])
		}
		for range random.IntN(3) {
			count.By = append(count.By, field([]string{"k", "m.n", "metadata.k.l", "m", "metadata.m.k", "level", "absent", "project", "environment"}[random.IntN(9)]))
		}
		summary, known := readSummary(t, &count, blocks)
		got, want := count.NewCounter(), count.NewCounter()
		of := ingest.Candidate{Header: header, Ref: ingest.Ref{Project: "prj_1"}}
		if !known || !count.CountsBundles() || !got.AddSummary(&of, &summary) {
			continue
		}
		for i := range blocks {
			want.Add(blocks[i].List, "prj_1")
		}
		if got, want := got.Result(10), want.Result(10); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s by %v: the summary counts %+v, texts %+v", count.Search.Query, count.By, got, want)
		}
		if got := got.Result(1); got.Levels.Sum() > 0 && got.Levels != header.Entries {
			bySummary["a part"]++
		}
		bySummary["all"]++
	}
	if bySummary["all"] < 1000 || bySummary["a part"] < 100 {
		t.Errorf("only %v bundles were counted by summaries", bySummary)
	}
}

func someBundle(t *testing.T, random *rand.Rand) (blocks []ingest.Block, of ingest.Header) {
	t.Helper()
	for i := range 1 + random.IntN(4) {
		blocks = append(blocks, someBlock(t, random))
		if i == 0 {
			of = blocks[0].Header
			continue
		}
		of.Include(&blocks[i].Header)
	}
	return blocks, of
}

// readSummary reads what a count needs of a summary, as it is stored.
func readSummary(t *testing.T, count *ingest.Count, blocks []ingest.Block) (summary ingest.Columns, known bool) {
	t.Helper()
	parts := summaryParts(blocks)
	summary, err := ingest.ParseColumns(parts[0])
	testenv.Must(t, err)
	numbers, known := count.Tables(&summary)
	for _, i := range numbers {
		testenv.Must(t, summary.ReadTable(i, parts[i+1]))
	}
	return summary, known
}

func summaryParts(blocks []ingest.Block) (parts [][]byte) {
	var bundle ingest.Bundle
	for i := range blocks {
		bundle.Add(&blocks[i])
	}
	bundle.AppendSummary(func(part []byte) { parts = append(parts, part) })
	return parts
}

// A damaged summary is an error, and no panic later.
func FuzzReadTable(f *testing.F) {
	blocks, _ := countedBlocks(rand.New(rand.NewPCG(1, 1)))
	parts := summaryParts(blocks)
	count := ingest.Count{Search: ingest.Search{Query: query("level:error n:1")}, By: []ingest.Field{field("n")}}
	for _, part := range parts[1:] {
		f.Add(parts[0], part)
	}
	f.Fuzz(func(_ *testing.T, head, part []byte) {
		summary, err := ingest.ParseColumns(head)
		numbers, known := count.Tables(&summary)
		if err != nil || !known {
			return
		}
		for _, i := range numbers {
			if summary.ReadTable(i, part) != nil {
				return
			}
		}
		count.NewCounter().AddSummary(&ingest.Candidate{}, &summary)
	})
}
