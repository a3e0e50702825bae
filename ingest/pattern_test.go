package ingest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/measure/entries"
	"github.com/weirlog/weir/shared/testenv"
)

func TestMask(t *testing.T) {
	for message, want := range map[string]string{
		"user ada logged in from 10.0.0.1:8080 in 12ms":      "user ada logged in from <ip> in <num>",
		"2026-01-31T12:00:00.123Z GET /orders/7/items?id=77": "<time> GET /orders/<num>/items?id=<num>",
		"fe80::1, 2001:db8::ff00:42:8329 a::b std::string":   "<ip>, <ip> a::b std::string",
		"ab:cd:ef:01:02:03 at 12:34:56, took 1:02:03.5":      "<ip> at <time>, took <time>",
		"用户12345登录成功":                                        "用户<num>登录成功",
		"注文7を受け付けました":                                        "注文<num>を受け付けました",
		"шаг 7: ошибка ё":                                    "шаг <num>: ошибка ё",
		`{"a": 1,
			"b":[1,2]}`: `{"a": <num>, "b":[<num>,<num>]}`,
		"x=-5 y=+3.5% of 1,204 to ada@acme.example.":           "x=<num> y=<num>% of <num> to <email>.",
		"blk_77 at com.acme.Shard.find(Shard.java:42)":         "<id> at com.acme.Shard.find(Shard.java:<num>)",
		"0x1f 550e8400-e29b-41d4-a716-446655440000 v1.2 don't": "<id> <id> <id> don't",
		"":                          "",
		" \n\t":                     "",
		"1 2 3":                     "<num> <num> <num>",
		"a\x00\x01b":                "a b",
		"<*> stays":                 "<*> stays",
		strings.Repeat("ab ", 5000): strings.Repeat("ab ", 80) + "…",
		strings.Repeat("a", 5000):   "…",
		strings.Repeat("a", 200):    "<id>",
	} {
		if masks, _ := ingest.GroupsOf([]string{message}); masks[0] != want {
			t.Errorf("%.80q is masked as %q, want %q", message, masks[0], want)
		}
	}
}

// What differs by few words stays apart, and what differs by many is one pattern.
func TestJoin(t *testing.T) {
	names := []string{"ada", "grace", "linus", "ken", "tim", "radia"}
	var messages []string
	for _, name := range names {
		messages = append(messages, "user "+name+" logged in", "job "+name+" started", "job "+name+" failed", "余额不足: "+name)
	}
	messages = append(messages, "cache is full", "cache is cold", "disk is full", "up", "down", "user db-1 logged in", "host db-1 left", "host localhost left")
	_, patterns := ingest.GroupsOf(messages)
	slices.Sort(patterns)
	want := []string{"cache is cold", "cache is full", "disk is full", "down", "host <*> left", "job <*> failed", "job <*> started", "up", "user <*> logged in", "余额不足: <*>"}
	if got := slices.Compact(patterns); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Entries in any order, shared among Counters in any way, have the same
// patterns, whose queries find all of their entries.
func TestPatternsDoNotDependOnTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	list := shopEntries(t, 2000)
	want := patternsOf(t, list)
	if want.Uncertain != 0 || len(want.Values) < 40 || len(want.Values) > 50 {
		t.Fatalf("%d patterns, uncertain by %d", len(want.Values), want.Uncertain)
	}
	for range 5 {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		at, other := random.IntN(len(list)), random.IntN(len(list))
		from, to := min(at, other), max(at, other)
		if got := patternsOf(t, list[from:to], list[:from], list[to:]); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	}
	var sum int64
	for _, value := range want.Values {
		query, err := ingest.ParseQuery(value.Pattern.Query())
		found := int64(0)
		for i := range list {
			if query.Matches(&list[i]) {
				found++
			}
		}
		if sum += value.Entries; err != nil || found < value.Entries || value.Pattern.Levels.Sum() != value.Entries || value.Pattern.Example == "" || value.Pattern.Last.Compare(value.Pattern.First.Time) < 0 {
			t.Errorf("%v: %q finds %d of %d: %+v", err, value.Pattern.Query(), found, value.Entries, value.Pattern)
		}
	}
	if sum != int64(len(list)) {
		t.Errorf("%d of %d entries are in patterns", sum, len(list))
	}
}

func shopEntries(t testing.TB, many int) (list []ingest.Stored) {
	generator, at := entries.New(7), time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for i := range many {
		at = at.Add(time.Second)
		text := generator.Append(nil, at)
		var entry struct{ Level string }
		testenv.Must(t, json.Unmarshal(text, &entry))
		level, _ := ingest.ParseSeverity([]byte(entry.Level))
		list = append(list, ingest.Stored{Place: ingest.Place{Time: ingest.InstantOf(at), Index: i}, Level: level, Text: text})
	}
	return list
}

// patternsOf are the patterns of parts that are counted by one Counter each.
func patternsOf(t testing.TB, parts ...[]ingest.Stored) ingest.FieldCounts {
	field, err := ingest.ParseField(ingest.FieldPattern)
	testenv.Must(t, err)
	count := ingest.Count{By: []ingest.Field{field}}
	all := count.NewCounter()
	for _, part := range parts {
		counter := count.NewCounter()
		counter.Add(part, "prj_1")
		all.Merge(counter)
	}
	return all.Result(1000).Fields[0]
}

func messages(list ...string) (stored []ingest.Stored) {
	for i, message := range list {
		text, _ := json.Marshal(map[string]string{"message": message})
		stored = append(stored, ingest.Stored{Place: ingest.Place{Time: ingest.Instant{Seconds: int64(i)}, Index: i}, Text: text})
	}
	return stored
}

// However many messages there are, the frequent patterns are found and the
// rest is bounded and said to be uncertain.
func TestPatternsAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	word := func() string {
		var word [8]byte
		for i := range word {
			word[i] = byte('a' + random.IntN(26))
		}
		return string(word[:])
	}
	var list []string
	for range 10_000 {
		list = append(list, "user "+word()+" logged in", "order of "+word()+" paid by "+word())
	}
	found := patternsOf(t, messages(list...))
	if len(found.Values) != 2 || found.Values[0].Entries != 10_000 || found.Values[1].Value != "user <*> logged in" || found.Uncertain != 0 {
		t.Errorf("words are no pattern: %+v", found)
	}
	list = list[:0]
	for i := range 10_000 {
		list = append(list, word()+strings.Repeat(" x", i%40)+" "+word(), "tick")
	}
	found = patternsOf(t, messages(list[:10_000]...), messages(list[10_000:]...))
	if len(found.Values) > 1000 || found.Values[0].Value != "tick" && !slices.ContainsFunc(found.Values, func(v ingest.ValueCount) bool { return v.Value == "tick" }) {
		t.Errorf("%d patterns, the first %q", len(found.Values), found.Values[0].Value)
	}
}

func TestMarkNew(t *testing.T) {
	before := patternsOf(t, messages("user ada logged in", "user ken logged in", "user tim logged in", "up"))
	now := patternsOf(t, messages("user grace logged in", "user linus logged in", "disk is full", "disk is full", "up"))
	ingest.MarkNew(&now, &before)
	var got []string
	for _, value := range now.Values {
		got = append(got, fmt.Sprint(value.Entries, value.Value, value.Pattern.New))
	}
	if want := []string{"2disk is fulltrue", "2user <*> logged infalse", "1upfalse"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever a message is, its pattern is bounded, and the pattern's query finds it.
func FuzzPattern(f *testing.F) {
	for _, message := range []string{"", "user ada1 logged in\n from 10.0.0.1", "用户张三登录成功", "a\x00\xffb‥、。1,234:5", "İıſK ΣΣς", "x:1::2:3", "-1 +", strings.Repeat("ab ", 300)} {
		f.Add(message, strings.ToUpper(message))
	}
	f.Fuzz(func(t *testing.T, message, other string) {
		list := messages(message, other, message+"a", other+" b", "c "+message)
		found := patternsOf(t, list)
		if turned := patternsOf(t, list[2:], list[:2]); !reflect.DeepEqual(found, turned) {
			t.Fatalf("%+v\n%+v", found, turned)
		}
		sum := found.Without
		for _, value := range found.Values {
			sum += value.Entries
			if len(value.Value) > 2000 || len(value.Pattern.Example) > 300 || !utf8.ValidString(value.Value) {
				t.Errorf("%q has %d bytes", value.Value, len(value.Value))
			}
			query, err := ingest.ParseQuery(value.Pattern.Query())
			many := int64(0)
			for i := range list {
				if query.Matches(&list[i]) {
					many++
				}
			}
			if err != nil || many < value.Entries {
				t.Errorf("%q finds %d of %d: %v", value.Pattern.Query(), many, value.Entries, err)
			}
		}
		if sum != int64(len(list)) {
			t.Errorf("%d entries are in patterns", sum)
		}
	})
}

// BenchmarkPatterns counts entries of a shop by one core.
func BenchmarkPatterns(b *testing.B) {
	list := shopEntries(b, 20_000)
	bytes := 0
	for i := range list {
		bytes += len(list[i].Text)
	}
	b.SetBytes(int64(bytes))
	for b.Loop() {
		patternsOf(b, list)
	}
	b.ReportMetric(float64(len(list)*b.N)/b.Elapsed().Seconds(), "entries/s")
}
