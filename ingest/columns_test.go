package ingest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

// Columns count what texts count: of paths with one value, several, none,
// null, objects and arrays, whatever their names.
func TestColumnsCountWhatTextsCount(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	byColumns := 0
	for range 10_000 {
		block := someBlock(t, random)
		count := ingest.Count{Search: ingest.Search{Query: query(someNode(random, 2).text)}}
		if random.IntN(2) == 0 {
			count.Search.Query = ingest.Query{}
		}
		for range 1 + random.IntN(2) {
			count.By = append(count.By, field([]string{"k", "m.n", "metadata.k.l", "m", "metadata.m.k", "level", "absent", "message"}[random.IntN(8)]))
		}
		candidate := ingest.Candidate{Header: block.Header}
		candidate.Bytes = ingest.SmallBlockBytes
		reads, some := count.Reads(&candidate)
		if !some || reads&ingest.ReadColumns == 0 {
			continue
		}
		if _, _, known := readColumns(t, &count, block); !known {
			continue
		}
		byColumns++
		got, want := count.NewCounter(), count.NewCounter()
		addBlock(t, &count, got, &candidate, block, reads)
		want.Add(block.List, "")
		if got, want := got.Result(10), want.Result(10); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: columns count %+v, texts %+v", count.Search.Query, got, want)
		}
	}
	if byColumns < 2000 {
		t.Errorf("only %d blocks were counted by columns", byColumns)
	}
}

func someBlock(t *testing.T, random *rand.Rand) ingest.Block {
	t.Helper()
	var builder ingest.Builder
	same, err := json.Marshal(someEntry(random))
	testenv.Must(t, err)
	for i := range 1 + random.IntN(20) {
		text := same
		if random.IntN(3) == 0 {
			text, _ = json.Marshal(someEntry(random))
		}
		read, err := ingest.ReadBack(fmt.Appendf(nil, `{"timestamp":"2026-11-01T00:00:00Z",%s`, text[1:]))
		testenv.Must(t, err)
		builder.Add(ingest.Stored{
			Place: ingest.Place{Time: ingest.Instant{Seconds: random.Int64N(9)}, Index: i}, Level: read.Level, Environment: string(read.Environment), Text: text,
		})
	}
	return builder.Build()
}

// A field of very many values, of long ones or among very many fields is in no column.
func TestColumnsAreBounded(t *testing.T) {
	for name, text := range map[string]func(i int) string{
		"unique values": func(i int) string { return fmt.Sprintf(`{"f":"id-%d"}`, i) },
		"long values":   func(i int) string { return fmt.Sprintf(`{"f":"%s%d"}`, strings.Repeat("x", 256), i%3) },
		"an array":      func(i int) string { return fmt.Sprintf(`{"f":%s}`, []string{"1", "[1]"}[i%2]) },
		"an object":     func(i int) string { return fmt.Sprintf(`{"f":%s}`, []string{"1", "{}"}[i%2]) },
		"many fields": func(i int) string {
			var fields strings.Builder
			for j := range 100 {
				fmt.Fprintf(&fields, `"f%d":1,`, j)
			}
			return "{" + fields.String() + `"f":1}`
		},
	} {
		var builder ingest.Builder
		for i := range 5000 {
			builder.Add(ingest.Stored{Place: ingest.Place{Index: i}, Text: []byte(text(i))})
		}
		block := builder.Build()
		size := 0
		block.AppendColumns(func(part []byte) { size += len(part) })
		count := ingest.Count{By: []ingest.Field{field("f")}}
		if _, _, known := readColumns(t, &count, block); known || size > 51*(5000+100) {
			t.Errorf("%s: %d bytes of columns know it", name, size)
		}
	}
}

// A damaged form is an error, and no panic later.
func FuzzParseColumns(f *testing.F) {
	var builder ingest.Builder
	for i := range 300 {
		builder.Add(ingest.Stored{Place: ingest.Place{Index: i}, Text: fmt.Appendf(nil, `{"a":%d,"b":{"c":"x%d"},"d":[1]}`, i%140, i%3)})
	}
	var parts [][]byte
	builder.Build().AppendColumns(func(part []byte) { parts = append(parts, part) })
	f.Add(parts[0], parts[1], 300)
	f.Fuzz(func(_ *testing.T, head, part []byte, entries int) {
		columns, err := ingest.ParseColumns(head)
		count := ingest.Count{By: []ingest.Field{field("a"), field("b.c")}}
		numbers, known := count.Columns(&columns)
		if err != nil || !known || entries < 0 || entries > 1000 {
			return
		}
		for _, i := range numbers {
			if columns.Read(i, part, entries) != nil {
				return
			}
		}
		counter, of := count.NewCounter(), ingest.Candidate{}
		of.Entries[ingest.SeverityInfo] = int64(entries)
		if rows, known := count.Select(&columns, entries); known {
			counter.AddColumns(&of, &columns, rows)
		}
	})
}

// What a message says behind the end of its mask is in the filter, and no
// column claims to know it.
func TestLongMessagesAreFoundByTheirEnds(t *testing.T) {
	var builder ingest.Builder
	const many = 20
	end := func(i int) string { return fmt.Sprintf("end%c", 'a'+i) }
	for i := range many {
		builder.Add(ingest.Stored{Place: ingest.Place{Index: i}, Text: fmt.Appendf(nil, `{"message":"%s %s"}`, strings.Repeat("long ", 60), end(i))})
	}
	block := builder.Build()
	for i := range many + 1 {
		count := ingest.Count{Search: ingest.Search{Query: query(end(i))}}
		if _, _, known := readColumns(t, &count, block); known || count.Search.Query.MayMatch(&block.Header) != (i < many) {
			t.Errorf("%s: columns know it: %t", end(i), known)
		}
	}
	count := ingest.Count{Search: ingest.Search{Query: query("long")}}
	if _, rows, known := readColumns(t, &count, block); !known || slices.Contains(rows, false) {
		t.Errorf("the beginnings: known %t, %v", known, rows)
	}
}

// Where a long message is no longer looked at, no word is lost: also behind
// white space, and where a letter of several bytes is there.
func TestNoWordIsLostWhereAMaskEnds(t *testing.T) {
	const looked = 4096
	for _, ends := range [][3]string{{" first", " needle", "needle"}, {"caf\u00ea x", "caf\u00e9 x", "caf\u00e9"}, {"\t\tx", "\t\tneedle", "needle"}} {
		for before := looked - 8; before <= looked+1; before++ {
			var builder ingest.Builder
			for i, end := range ends[:2] {
				message := "dump " + strings.Repeat("0", before-len("dump  ")) + " " + end
				builder.Add(ingest.Stored{Place: ingest.Place{Index: i}, Text: fmt.Appendf(nil, `{"message":%q}`, message)})
			}
			checkNeedle(t, builder.Build(), ends[2], fmt.Sprintf("%q from %d on", ends[1], before))
		}
	}
	var builder ingest.Builder
	builder.Add(ingest.Stored{Text: fmt.Appendf(nil, `{"message":%q}`, strings.Repeat(" ", looked)+"needle")})
	checkNeedle(t, builder.Build(), "needle", "white space alone")
}

// checkNeedle checks that a block finds its last entry by a word.
func checkNeedle(t *testing.T, block ingest.Block, word, what string) {
	t.Helper()
	count := ingest.Count{Search: ingest.Search{Query: query(word)}}
	if !count.Search.Query.MayMatch(&block.Header) {
		t.Errorf("%s: the filter lacks it", what)
	}
	if _, rows, known := readColumns(t, &count, block); known && !rows[len(rows)-1] {
		t.Errorf("%s: the columns claim to know that it is not there", what)
	}
}

// A field whose name is that of a column of what is in no text is none.
func TestColumnsHaveTheirOwnNames(t *testing.T) {
	var builder ingest.Builder
	fields := ""
	for i := range 30 {
		fields += fmt.Sprintf(`,"f%d":1`, i)
	}
	for i := range 100 {
		builder.Add(ingest.Stored{Place: ingest.Place{Index: i}, Level: ingest.SeverityInfo, Text: []byte(`{"message":"cart opened",":message":"x",":level":"error"` + fields + `}`)})
	}
	block := builder.Build()
	count := ingest.Count{Search: ingest.Search{Query: query("level:info cart")}}
	if _, rows, known := readColumns(t, &count, block); !known || slices.Contains(rows, false) {
		t.Errorf("known %t, %v", known, rows)
	}
}

// BenchmarkBuild makes blocks of the entries of a shop.
func BenchmarkBuild(b *testing.B) {
	list, bytes := shopEntries(b, 3000), 0
	for i := range list {
		bytes += len(list[i].Text)
	}
	b.SetBytes(int64(bytes))
	for b.Loop() {
		var builder ingest.Builder
		for i := range list {
			builder.Add(list[i])
		}
		builder.Build()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(len(list)*b.N), "ns/entry")
}
