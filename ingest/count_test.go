package ingest_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

// Counters that share the blocks of random entries among them, by
// headers where these suffice, count what a plain loop counts.
func TestCountersAgreeWithAPlainLoop(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	read := map[ingest.Reading]int{}
	for range 300 {
		list, all := countedBlocks(random)
		count := someCount(random)
		counters := []*ingest.Counter{count.NewCounter(), count.NewCounter()}
		for i, block := range list {
			candidate := ingest.Candidate{Header: block.Header, Ref: ingest.Ref{Project: "prj_1"}}
			candidate.Bytes = ingest.SmallBlockBytes // so that it has columns
			reads, some := count.Reads(&candidate)
			if read[reads]++; some {
				addBlock(t, &count, counters[i%2], &candidate, block, reads)
			}
		}
		counters[0].Merge(counters[1])
		checkCounted(t, &count, counters[0].Result(ingest.MaxValues), all)
	}
	for _, reads := range []ingest.Reading{0, ingest.ReadDirectory, ingest.ReadColumns, ingest.ReadDirectory | ingest.ReadColumns, ingest.ReadAll} {
		if read[reads] < 20 {
			t.Errorf("%d blocks were read as far as %d: the test does not show it", read[reads], reads)
		}
	}
}

// addBlock counts a block by what the count asks for, as it is stored.
func addBlock(t *testing.T, count *ingest.Count, counter *ingest.Counter, candidate *ingest.Candidate, block ingest.Block, reads ingest.Reading) {
	t.Helper()
	if reads == 0 {
		counter.AddHeader(candidate)
		return
	}
	columns, rows, known := readColumns(t, count, block)
	entries, err := ingest.ParseDirectory(block.AppendDirectory(nil))
	testenv.Must(t, err)
	switch {
	case reads&ingest.ReadTexts != 0, reads&ingest.ReadColumns != 0 && !known:
		counter.Add(block.List, candidate.Project)
	case reads == ingest.ReadColumns:
		counter.AddColumns(candidate, &columns, rows)
	case reads&ingest.ReadColumns != 0:
		columns.Attach(entries)
		counter.AddRows(entries, rows, candidate.Project)
	default:
		counter.Add(entries, candidate.Project)
	}
}

// readColumns reads those columns that a count needs, as they are stored.
func readColumns(t *testing.T, count *ingest.Count, block ingest.Block) (columns ingest.Columns, rows []bool, known bool) {
	t.Helper()
	var parts [][]byte
	block.AppendColumns(func(part []byte) { parts = append(parts, part) })
	columns, err := ingest.ParseColumns(parts[0])
	testenv.Must(t, err)
	numbers, known := count.Columns(&columns)
	for _, i := range numbers {
		testenv.Must(t, columns.Read(i, parts[i+1], len(block.List)))
	}
	if known {
		rows, known = count.Select(&columns, len(block.List))
	}
	return columns, rows, known
}

func countedBlocks(random *rand.Rand) (list []ingest.Block, all []ingest.Stored) {
	var builder ingest.Builder
	for i := range random.IntN(100) {
		entry, message := someStored(random)
		entry.Index = i
		entry.Text = fmt.Appendf(nil, `{"message":%q,"metadata":{"n":%d,"s":"x%d","t":["a",%d]}}`, message, random.IntN(5), random.IntN(3), random.IntN(2))
		if random.IntN(4) == 0 {
			entry.Text = fmt.Appendf(nil, `{"message":%q,"n":-2.5}`, message)
		}
		all = append(all, entry)
		builder.Add(entry)
		if random.IntN(4) == 0 {
			list = append(list, builder.Build())
		}
	}
	if builder.Len() > 0 {
		list = append(list, builder.Build())
	}
	return list, all
}

func someCount(random *rand.Rand) (count ingest.Count) {
	if random.IntN(2) == 0 {
		count.Search.From, count.Search.To = &ingest.Instant{Seconds: -15}, &ingest.Instant{Seconds: 15, Nanos: uint32(random.IntN(2))}
		count.Every = time.Duration(random.IntN(8)) * time.Second
	}
	count.Search.Query = query([]string{"", "", "level:error", "-level:info", "level:warn OR environment:prod", "retry", "order42", "n:>2"}[random.IntN(8)])
	if random.IntN(4) == 0 {
		count.Search.Environment = "prod"
	}
	names := []string{"level", "project", "environment", "n", "metadata.s", "t", "absent"}
	for range random.IntN(3) {
		count.By = append(count.By, field(names[random.IntN(len(names))]))
	}
	if random.IntN(3) == 0 {
		count.Of = field("n")
	}
	return count
}

func field(name string) ingest.Field {
	f, err := ingest.ParseField(name)
	if err != nil {
		panic(err)
	}
	return f
}

// naiveValues are the values of the entries of countedBlocks.
func naiveValues(entry *ingest.Stored, name string) []string {
	text := string(entry.Text)
	after := func(mark string) string {
		_, rest, _ := strings.Cut(text, mark)
		return rest[:max(0, strings.IndexAny(rest, `,"]}`))]
	}
	switch {
	case name == "level":
		return []string{entry.Level.String()}
	case name == "project":
		return []string{"prj_1"}
	case name == "environment" && entry.Environment != "":
		return []string{entry.Environment}
	case name == "n":
		return []string{after(`"n":`)}
	case name == "metadata.s" && strings.Contains(text, `"s":`):
		return []string{after(`"s":"`)}
	case name == "t" && strings.Contains(text, `"t":`):
		return []string{"a", after(`"a",`)}
	}
	return nil
}

func checkCounted(t *testing.T, count *ingest.Count, got ingest.Counted, all []ingest.Stored) {
	t.Helper()
	var sum ingest.LevelCounts
	buckets, values, without := map[int64]int64{}, make([]map[string]int64, len(count.By)), make([]int64, len(count.By))
	numbers := 0.0
	for i := range all {
		entry := &all[i]
		if !count.Search.Matches(entry) {
			continue
		}
		sum[entry.Level]++
		if count.Every > 0 {
			buckets[(entry.Time.Seconds-count.FirstBucket())/int64(count.Every/time.Second)]++
		}
		var n float64
		_, _ = fmt.Sscan(naiveValues(entry, "n")[0], &n)
		numbers += n
		for at, by := range count.By {
			found := naiveValues(entry, by.String())
			for _, value := range found {
				if values[at] == nil {
					values[at] = map[string]int64{}
				}
				values[at][value]++
			}
			if len(found) == 0 {
				without[at]++
			}
		}
	}
	if got.Levels != sum || got.Numbers != nil && (got.Numbers.Sum != numbers || got.Numbers.Count != sum.Sum()) {
		t.Fatalf("counted %v and %+v, want %v and the sum %v, for %+v", got.Levels, got.Numbers, sum, numbers, count)
	}
	for i, bucket := range got.Buckets {
		if bucket.Sum() != buckets[int64(i)] {
			t.Fatalf("bucket %d has %v, want %d, for %+v", i, bucket, buckets[int64(i)], count)
		}
	}
	for at, of := range got.Fields {
		found := map[string]int64{}
		for _, value := range of.Values {
			found[value.Value] = value.Entries
			inBuckets := int64(0)
			for _, n := range value.Buckets {
				inBuckets += n
			}
			if value.Buckets != nil && inBuckets != value.Entries || value.Numbers != nil && value.Numbers.Count != value.Entries {
				t.Fatalf("the buckets or numbers of %+v are not those of its entries", value)
			}
		}
		if !maps.Equal(found, values[at]) || of.Without != without[at] || of.Uncertain != 0 {
			t.Fatalf("%s: %v, without it %d, want %v and %d, for %+v", of.Field, found, of.Without, values[at], without[at], count)
		}
	}
}

// With far more values than are tracked, each frequent one is found, and
// no count is further off than is said.
func TestFrequentValuesAreFoundAmongMany(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	count := ingest.Count{By: []ingest.Field{field("id")}}
	counters := []*ingest.Counter{count.NewCounter(), count.NewCounter(), count.NewCounter()}
	exact := map[string]int64{}
	const many = 200_000
	for i := range many {
		id := fmt.Sprintf("rare%d", random.IntN(many))
		if random.IntN(4) == 0 {
			id = fmt.Sprintf("often%d", random.IntN(20))
		}
		exact[id]++
		entry := ingest.Stored{Level: ingest.SeverityInfo, Text: fmt.Appendf(nil, `{"metadata":{"id":%q}}`, id)}
		counters[i%3].Add([]ingest.Stored{entry}, "prj_1")
	}
	counters[0].Merge(counters[1])
	counters[0].Merge(counters[2])
	got := counters[0].Result(20).Fields[0]
	for _, value := range got.Values {
		if off := exact[value.Value] - value.Entries; !strings.HasPrefix(value.Value, "often") || off < 0 || off > got.Uncertain {
			t.Errorf("%s: %d, exactly %d, uncertain by %d", value.Value, value.Entries, exact[value.Value], got.Uncertain)
		}
	}
	if len(got.Values) != 20 || got.Uncertain == 0 || got.Uncertain > many/150 {
		t.Errorf("%d values, uncertain by %d", len(got.Values), got.Uncertain)
	}
}

// One entry costs little, however many values and numbers it has, and
// counts once for each value.
func TestAnEntryIsBounded(t *testing.T) {
	many := func(item string) string { return "[" + strings.Repeat(item+",", 20_000) + item + "]" }
	distinct := make([]string, 300)
	for i := range distinct {
		distinct[i] = fmt.Sprint(i)
	}
	entry := ingest.Stored{Level: ingest.SeverityInfo, Text: fmt.Appendf(nil, `{"metadata":{"a":%s,"b":[%s],"s":"%s"}}`, many("1"), strings.Join(distinct, ","), strings.Repeat("x", 300))}
	count := ingest.Count{By: []ingest.Field{field("a"), field("b")}, Of: field("a")}
	counter := count.NewCounter()
	counter.Add([]ingest.Stored{entry}, "prj_1")
	got := counter.Result(ingest.MaxValues)
	if a := got.Fields[0].Values; len(a) != 1 || a[0].Entries != 1 || a[0].Numbers.Count != 16 || got.Numbers.Count != 16 {
		t.Errorf("an array of one value counts as %+v", got)
	}
	if b := got.Fields[1].Values; len(b) != 64 {
		t.Errorf("an entry counts for %d values of an array", len(b))
	}
	if long := counted(&entry, "s"); len(long.Values) != 0 || long.Without != 1 {
		t.Errorf("a long value counts as %+v", long)
	}
}

func counted(entry *ingest.Stored, name string) ingest.FieldCounts {
	count := ingest.Count{By: []ingest.Field{field(name)}}
	counter := count.NewCounter()
	counter.Add([]ingest.Stored{*entry}, "prj_1")
	return counter.Result(1).Fields[0]
}

// Quantiles are within 2 % of the exact ones, over a wide range the high ones.
func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for spread, shares := range map[float64][]float64{1: {0, 0.01, 0.09, 0.5, 0.9, 0.95, 0.99, 1}, 2.5: {0.9, 0.95, 0.99, 1}} {
		parts, all := []*ingest.Numbers{{}, {}}, []float64{}
		for i := range 10_000 {
			number := math.Exp(random.NormFloat64() * spread)
			if i%10 == 0 {
				number = -number
			}
			parts[i%2].Add(number)
			all = append(all, number)
		}
		numbers := new(ingest.Numbers)
		numbers.Merge(parts[0])
		numbers.Merge(parts[1])
		slices.Sort(all)
		for _, share := range shares {
			want := all[int(share*float64(len(all)-1))]
			if got := numbers.Quantile(share); math.Abs(got-want) > 0.0201*math.Abs(want) {
				t.Errorf("quantile %v of numbers spread by %v is %v, want %v", share, spread, got, want)
			}
		}
	}
}

func TestQuantilesOfExtremes(t *testing.T) {
	numbers := new(ingest.Numbers)
	for _, number := range []float64{0, 1e-300, 1e300, math.MaxFloat64, math.MaxFloat64} {
		numbers.Add(number)
	}
	if low, high := numbers.Quantile(0), numbers.Quantile(1); low != 0 || math.IsInf(high, 0) || high < math.MaxFloat64*0.97 || math.IsInf(numbers.Sum, 0) {
		t.Errorf("from %v to %v, sum %v", low, high, numbers.Sum)
	}
}

func TestParseFieldRefuses(t *testing.T) {
	for _, name := range []string{"", "a b", "a*", "a:b", `a"`, strings.Repeat("a.", 17) + "a"} {
		if _, err := ingest.ParseField(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}
