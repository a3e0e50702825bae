package bus

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping"
)

// hostile are error payloads of the maximal
// size, each the worst case of something.
func hostile(size int) map[string]map[string]any {
	lines := func(line string) (list []string) {
		for n := 0; n < size; n += len(line) {
			list = append(list, line)
		}
		return list
	}
	text := func(seed string) string { return strings.Repeat(seed, size/len(seed)) }
	return map[string]map[string]any{
		"java lines":      {"type": "E", "stack_trace": lines("\tat com.acme.pay.Gateway.charge(Gateway.java:101)")},
		"java text":       {"type": "E", "stack_trace": []string{text("\tat com.acme.pay.Gateway.charge(Gateway.java:101)\n")}},
		"python text":     {"type": "E", "stack_trace": []string{text("  File \"/app/shop/cart.py\", line 12, in total\n    return 1\n")}},
		"caused by":       {"type": "E", "stack_trace": []string{text("Caused by: com.acme.Failed: it broke\n\tat com.acme.A.b(A.java:1)\n")}},
		"unknown text":    {"type": "E", "stack_trace": []string{text("some words of a trace in no known form 12\n")}},
		"short lines":     {"type": "E", "stack_trace": lines("a")},
		"newlines":        {"type": "E", "stack_trace": []string{text("\n")}},
		"message lines":   {"type": "E", "message": text("a\n")},
		"message newline": {"type": "E", "message": text("\n")},
		"flattened":       {"type": "E", "stack_trace": []string{text("at a.B.c(B.java:1) ")}},
		"parentheses":     {"type": "E", "stack_trace": []string{text("(")}},
		"nested at":       {"type": "E", "stack_trace": []string{text("at a.b(")}},
		"spaces":          {"type": "E", "stack_trace": []string{text(" ") + "x"}},
		"quotes":          {"type": "E", "message": text(`"`)},
		"backslashes":     {"type": "E", "message": text(`\`)},
		"controls":        {"type": "E", "message": text("\u0001")},
		"long type":       {"type": text("g1a")},
		"escaped lines":   {"type": "E", "stack_trace": lines("\tat \"x\".y(z:1)\\")},
		"angles":          {"type": "E", "stack_trace": lines("<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<")},
	}
}

func hostileEntry(payload map[string]any) string {
	text, err := json.Marshal(map[string]any{"timestamp": "2026-11-20T12:00:00Z", "level": "error", "message": "m", "error": payload})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

// Whatever an entry of 512 KB holds, what is read of it is bounded.
func TestWhatIsReadIsBounded(t *testing.T) {
	const size = 512 << 10
	for name, payload := range hostile(size) {
		e, err := new(scanner).entry(hostileEntry(payload), pathsOf(grouping.DefaultPaths()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		read := len(e.err.Type) + len(e.err.Message)
		for _, piece := range e.err.StackTrace {
			read += len(piece)
		}
		if limit := maxHead + maxTail + 100; read > limit || len(e.err.StackTrace) > 2*maxPieces {
			t.Errorf("%s: %d bytes in %d pieces are read", name, read, len(e.err.StackTrace))
		}
	}
}

// An error of 100 KB, from its entry's text to its count.
func BenchmarkHostileEntry(b *testing.B) {
	for name, payload := range hostile(100 << 10) {
		b.Run(name, func(b *testing.B) {
			text := hostileEntry(payload)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				e, err := new(scanner).entry(text, pathsOf(grouping.DefaultPaths()))
				if err != nil {
					b.Fatal(err)
				}
				tally := grouping.NewTally()
				tally.Add(grouping.Occurrence{Organization: "o", Project: "p", Error: e.err})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "errors/s")
		})
	}
}
