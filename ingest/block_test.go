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
		Text:        []byte(message),
	}
	entry.Batch[random.IntN(16)] = byte(random.IntN(200))
	return entry, message
}

// blocks returns blocks of n entries; each entry's text is its message.
func blocks(random *rand.Rand, n int) (all []ingest.Stored, list []ingest.Block) {
	var builder ingest.Builder
	perBlock := 1 + random.IntN(7)
	for i := range n {
		entry, message := someStored(random)
		entry.Index = i // places are unique
		all = append(all, entry)
		builder.Add(entry, []byte(message))
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
		entries, err := ingest.ParseEntries(block.AppendBinary(nil))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(entries, block.List) {
			t.Fatalf("read %+v, want %+v", entries, block.List)
		}
		if !slices.IsSortedFunc(entries, func(a, b ingest.Stored) int { return a.Compare(b.Place) }) {
			t.Fatal("the entries are not in order")
		}
	}
}

// A damaged block is an error, never a panic and never a huge allocation.
func TestParseEntriesRefusesDamage(t *testing.T) {
	_, list := blocks(rand.New(rand.NewPCG(3, 4)), 40)
	whole := list[0].AppendBinary(nil)
	for cut := range whole {
		if _, err := ingest.ParseEntries(whole[:cut]); err == nil {
			t.Errorf("a block cut at %d of %d bytes was read", cut, len(whole))
		}
	}
	if _, err := ingest.ParseEntries(append(whole, 0)); err == nil {
		t.Error("a block with a byte too many was read")
	}
}

func FuzzParseEntries(f *testing.F) {
	_, list := blocks(rand.New(rand.NewPCG(5, 6)), 40)
	f.Add(list[0].AppendBinary(nil))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = ingest.ParseEntries(data) })
}

// A block's filter has no false negatives and few false positives.
func TestWordFilter(t *testing.T) {
	var builder ingest.Builder
	for i := range 2000 {
		builder.Add(ingest.Stored{Level: ingest.SeverityInfo}, fmt.Appendf(nil, "order%d shipped", i))
	}
	filter := builder.Build().Words
	wrong := 0
	for i := range 2000 {
		if !filter.MayHold(ingest.ParseWords(fmt.Sprintf("Order%d", i))) {
			t.Fatalf("the filter denies order%d", i)
		}
		if filter.MayHold(ingest.ParseWords(fmt.Sprintf("absent%d", i))) {
			wrong++
		}
	}
	if wrong > 60 {
		t.Errorf("the filter affirms %d of 2000 absent words, want at most 3 %%", wrong)
	}
}

func TestWords(t *testing.T) {
	cases := []struct {
		query, message string
		want           bool
	}{
		{"checkout failed", "Payment FAILED at checkout.", true},
		{"checkout failed", "checkout", false},
		{"fail", "checkout failed", false},
		{"zürich", "Filiale ZÜRICH-West", true},
		{"e42", "code=E42;", true},
		{"京", "東京から", true},
		{"user_id", "user id 7", true},
		{"", "anything", true},
	}
	for _, c := range cases {
		if got := ingest.ParseWords(c.query).In([]byte(c.message)); got != c.want {
			t.Errorf("%q in %q = %t, want %t", c.query, c.message, got, c.want)
		}
	}
	if got := len(ingest.ParseWords(strings.Repeat("a b c d e f g h ", 9) + strings.Join(numbered(100), " "))); got != ingest.MaxWords {
		t.Errorf("%d words of a long query, want %d", got, ingest.MaxWords)
	}
	if got := ingest.ParseWords("?! \x00"); len(got) != 0 {
		t.Errorf("words of punctuation = %q, want none", got)
	}
}

func numbered(n int) (words []string) {
	for i := range n {
		words = append(words, fmt.Sprint("w", i))
	}
	return words
}
