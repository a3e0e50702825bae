package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

var received = time.Date(2026, 11, 21, 12, 0, 0, 123, time.UTC)

var vocabulary = strings.Fields("cart checkout payment Zürich failed timeout 東京 retry order42 ok")

// someStored returns a random entry from few values, so that times and
// words repeat.
func someStored(random *rand.Rand) (ingest.Stored, string) {
	message := fmt.Sprintf("%s, %s!", vocabulary[random.IntN(len(vocabulary))], vocabulary[random.IntN(len(vocabulary))])
	entry := ingest.Stored{
		Place:       ingest.Place{Time: ingest.Instant{Seconds: random.Int64N(40) - 20, Nanos: uint32(random.IntN(2))}, Index: random.IntN(1000)},
		ReceivedAt:  received.Add(time.Duration(random.IntN(3))),
		Level:       ingest.Severity(1 + random.IntN(5)),
		Environment: []string{"prod", "staging", ""}[random.IntN(3)],
		Text:        fmt.Appendf(nil, `{"message":%q}`, message),
	}
	entry.Batch[random.IntN(16)] = byte(random.IntN(200))
	return entry, message
}

// blocks returns blocks of n entries.
func blocks(random *rand.Rand, n int) (all []ingest.Stored, list []ingest.Block) {
	var builder ingest.Builder
	perBlock := 1 + random.IntN(7)
	for i := range n {
		entry, _ := someStored(random)
		entry.Index = i // places are unique
		all = append(all, entry)
		builder.Add(entry)
		if random.IntN(perBlock) == 0 {
			list = append(list, builder.Build())
		}
	}
	if builder.Len() > 0 {
		list = append(list, builder.Build())
	}
	return all, list
}

// A stored block is read as it was written, byte for byte and in order.
func TestBlockSurvivesItsStoredForm(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	_, list := blocks(random, 500)
	for _, block := range list {
		entries, err := ingest.ParseEntries(nil, block.AppendDirectory(nil), block.AppendTexts(nil))
		testenv.Must(t, err)
		if !reflect.DeepEqual(entries, block.List) {
			t.Fatalf("read %+v, want %+v", entries, block.List)
		}
		if !slices.IsSortedFunc(entries, func(a, b ingest.Stored) int { return a.Compare(b.Place) }) {
			t.Fatal("the entries are not in order")
		}
	}
}

// Times of any precision are read as they were written.
func TestTimesSurviveTheirStoredForm(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, unit := range []int{1, 1e3, 1e6, 1e9} {
		var builder ingest.Builder
		for range 100 {
			entry, _ := someStored(random)
			entry.Time.Nanos = uint32(random.IntN(1e9/unit) * unit)
			builder.Add(entry)
		}
		block := builder.Build()
		entries, err := ingest.ParseDirectory(block.AppendDirectory(nil))
		testenv.Must(t, err)
		for i := range entries {
			if entries[i].Time != block.List[i].Time {
				t.Fatalf("in units of %d ns %s is read as %s", unit, block.List[i].Time, entries[i].Time)
			}
		}
	}
}

// A damaged block is an error, never a panic and never a huge allocation.
func TestParseEntriesRefusesDamage(t *testing.T) {
	_, list := blocks(rand.New(rand.NewPCG(3, 4)), 40)
	directory, texts := list[0].AppendDirectory(nil), list[0].AppendTexts(nil)
	for cut := range directory {
		if _, err := ingest.ParseEntries(nil, directory[:cut], texts); err == nil {
			t.Errorf("a directory cut at %d of %d bytes was read", cut, len(directory))
		}
	}
	for cut := range texts {
		if _, err := ingest.ParseEntries(nil, directory, texts[:cut]); err == nil {
			t.Errorf("texts cut at %d of %d bytes were read", cut, len(texts))
		}
	}
	if _, err := ingest.ParseEntries(nil, append(directory, 0), texts); err == nil {
		t.Error("a directory with a byte too many was read")
	}
	if _, err := ingest.ParseEntries(nil, directory, append(texts, 0)); err == nil {
		t.Error("texts with a byte too many were read")
	}
}

func FuzzParseEntries(f *testing.F) {
	_, list := blocks(rand.New(rand.NewPCG(5, 6)), 40)
	f.Add(list[0].AppendDirectory(nil), list[0].AppendTexts(nil))
	f.Fuzz(func(_ *testing.T, directory, texts []byte) { _, _ = ingest.ParseEntries(nil, directory, texts) })
}

// A block's filter has no false negatives and few false positives.
func TestWordFilter(t *testing.T) {
	var builder ingest.Builder
	for i := range 2000 {
		builder.Add(ingest.Stored{Level: ingest.SeverityInfo, Text: fmt.Appendf(nil, `{"message":"order%d shipped"}`, i)})
	}
	filter := builder.Build().Words
	wrong := 0
	for i := range 2000 {
		if !query(fmt.Sprintf("Order%d", i)).MayMatch(&ingest.Header{Words: filter}) {
			t.Fatalf("the filter denies order%d", i)
		}
		if query(fmt.Sprintf("absent%d", i)).MayMatch(&ingest.Header{Words: filter}) {
			wrong++
		}
	}
	if wrong > 6 {
		t.Errorf("the filter affirms %d of 2000 absent words, want at most 3 ‰", wrong)
	}
}

// The spans of a receipt are few for any event times. Near ones are an
// hour wide; none mixes past and future, or near and far.
func TestSpans(t *testing.T) {
	type ends struct{ min, max int64 }
	spans := map[ingest.Span]ends{}
	random := rand.New(rand.NewPCG(1, 1))
	add := func(seconds int64) {
		at := ingest.Instant{Seconds: seconds}
		span := ingest.SpanOf(at, received)
		known, again := spans[span]
		if !again {
			known = ends{seconds, seconds}
		}
		spans[span] = ends{min(known.min, seconds), max(known.max, seconds)}
	}
	const year0, year9999 = -62_167_219_200, 253_402_300_799
	now := received.Unix()
	for range 100_000 {
		add(year0 + random.Int64N(year9999-year0))
		distance := int64(1) << random.IntN(38)
		add(max(year0, min(year9999, now+random.Int64N(2*distance)-distance)))
	}
	add(year0)
	add(year9999)
	if len(spans) > ingest.MaxSpans {
		t.Errorf("%d spans, want at most %d", len(spans), ingest.MaxSpans)
	}
	hour := int64(time.Hour / time.Second)
	for span, of := range spans {
		near := min(max(of.min-now, now-of.min), max(of.max-now, now-of.max)) <= hour
		if near && of.max-of.min >= hour || !near && (of.min < now) != (of.max < now) {
			t.Errorf("%v reaches from %d to %d s after its receipt", span, of.min-now, of.max-now)
		}
	}
}
