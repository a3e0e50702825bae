package bus

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping"
)

// Whatever JSON writes into a string is read like encoding/json reads it.
func TestUnescape(t *testing.T) {
	parts := []string{`\n`, `\t`, `\\`, `\"`, `\/`, `\b`, `\f`, `\r`, `\u0000`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\n`, `\ud83d\u0041`, `\uFFFD`, "é", "a", " ", "\U0001F600", "u0041", "d83d"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		raw := ""
		for range random.IntN(8) {
			raw += parts[random.IntN(len(parts))]
		}
		var want string
		if err := json.Unmarshal([]byte(`"`+raw+`"`), &want); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		e, err := new(scanner).entry(`{"level":"`+raw+`","message":"x"}`, pathsOf(grouping.DefaultPaths()))
		if err != nil || e.level != want || e.message != "x" {
			t.Fatalf("%s is read as %q, %v, want %q", raw, e.level, err, want)
		}
	}
	for _, raw := range []string{`\`, `\x`, `\u`, `\u12`, `\u12g4`} {
		if _, ok := unescape(raw); ok {
			t.Errorf("%s was decoded", raw)
		}
	}
}

// A long text is read from both ends: no cut
// splits an escape, and memory is bounded.
func TestLongTexts(t *testing.T) {
	for _, seed := range []string{`\\`, `\n`, `\u0001`, `\ud83d\ude00`, "a", `a\"`, `\\u0041`, `\\\u0041`} {
		for shift := range 13 {
			raw := strings.Repeat("x", shift) + strings.Repeat(seed, (maxHead+maxTail)/len(seed)+100) + "end"
			e, err := new(scanner).entry(`{"error":{"message":"`+raw+`","stack_trace":["first","`+raw+`","last"]}}`, pathsOf(grouping.DefaultPaths()))
			if err != nil {
				t.Fatalf("%s after %d: %v", seed, shift, err)
			}
			if n := len(e.err.Message); n > maxHead+maxTail+20 || !strings.HasSuffix(e.err.Message, "end") {
				t.Errorf("%s: %d bytes of the message are kept", seed, n)
			}
			if s := e.err.StackTrace; len(s) != 4 || s[0] != "first" || s[3] != "last" || len(s[1])+len(s[2]) > maxHead+maxTail+20 {
				t.Errorf("%s: %d pieces are kept", seed, len(s))
			}
		}
	}
}

// Of an array with too many elements the
// first and the last are read, in order.
func TestManyPieces(t *testing.T) {
	for _, n := range []int{1, maxPieces, maxPieces + 1, 2 * maxPieces, 2*maxPieces + 1, 5*maxPieces + 7} {
		for _, width := range []int{1, 300} {
			var list []string
			for i := range n {
				list = append(list, fmt.Sprintf(`"%0*d"`, width+4, i))
			}
			e, err := new(scanner).entry(`{"error":{"stack_trace":[`+strings.Join(list, ",")+`]}}`, pathsOf(grouping.DefaultPaths()))
			got := e.err.StackTrace
			if err != nil || len(got) > 2*maxPieces || len(got) < min(n, (maxHead+maxTail)/(width+7)-3, 2*maxPieces) {
				t.Fatalf("%d of %d are read: %v", len(got), n, err)
			}
			if `"`+got[0]+`"` != list[0] || `"`+got[len(got)-1]+`"` != list[n-1] {
				t.Errorf("%q to %q are read", got[0], got[len(got)-1])
			}
			for i := 1; i < len(got); i++ {
				if len(got[i]) == len(got[0]) && len(got[i-1]) == len(got[0]) && got[i] <= got[i-1] {
					t.Fatalf("%q comes after %q", got[i], got[i-1])
				}
			}
		}
	}
}
