package entries

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weirlog/weir/shared/testenv"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)

// Placeholders are filled, all else stays, also a language's braces.
func TestParse(t *testing.T) {
	g := New(1)
	text := string(g.append(nil, noon, &template{parts: parse("#3 {main} of {nothing line {40~0} of {7~0}, {hex} {hex}")}))
	rest, found := strings.CutPrefix(text, `{"timestamp":"2026-11-21T12:00:00.123Z#3 {main} of {nothing line 40 of 7, `)
	if a, b, _ := strings.Cut(rest, " "); !found || len(a) != 8 || a == b {
		t.Error(text)
	}
}

// Entries are legal and as different, as large and as compressible as those
// of real services are.
func TestEntriesAreLikeRealOnes(t *testing.T) {
	const many, block = 100_000, 1 << 20
	g, encoder := New(2), encoder(t)
	levels, traces, packed, all := map[string]int{}, map[string]int{}, 0, 0
	var text []byte
	for i := range many {
		before := len(text)
		text = g.Append(text, noon.Add(time.Duration(i)*8640*time.Microsecond))
		var e struct {
			Timestamp      time.Time
			Level, Message string
			Metadata       struct {
				Service string
				Trace   string `json:"trace_id"`
			}
			Error *struct {
				Type  string
				Stack []string `json:"stack_trace"`
			}
		}
		entry := text[before:]
		if err := json.Unmarshal(entry, &e); err != nil || e.Message == "" || e.Metadata.Service == "" || len(e.Metadata.Trace) != 32 {
			t.Fatalf("%v: %s", err, entry)
		}
		if size := len(entry); size < 100 || size > 500 || strings.Contains(string(entry), "~") {
			t.Fatalf("%d bytes: %s", size, entry)
		}
		levels[e.Level]++
		traces[e.Metadata.Trace]++
		if len(text) >= block {
			packed, all, text = packed+len(encoder.EncodeAll(text, nil)), all+len(text), text[:0]
		}
	}
	if ratio := float64(all) / float64(packed); ratio < 8 || ratio > 12 {
		t.Errorf("1 MiB compresses %.1f-fold", ratio)
	}
	t.Logf("%d bytes an entry, %.1f-fold, %v, %d with an error, %d entries a trace", all/many, float64(all)/float64(packed), levels, g.Errors, many/len(traces))
	for level, share := range map[string]float64{"debug": 0.1, "info": 0.6, "warn": 0.05, "error": 0.02, "fatal": 0.0005} {
		if float64(levels[level]) < share*many {
			t.Errorf("%d entries of level %s", levels[level], level)
		}
	}
	if least := slices.Min(slices.Collect(maps.Values(levels))); g.Errors < many/50 || g.Errors > many/20 || least == 0 {
		t.Errorf("%d have an error", g.Errors)
	}
}

func encoder(t *testing.T) *zstd.Encoder {
	t.Helper()
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(3)))
	testenv.Must(t, err)
	return e
}

// The same seed makes the same entries, another others, and every service
// fails in its own language's way.
func TestSeeds(t *testing.T) {
	made := func(seed uint64) string {
		g, text := New(seed), []byte(nil)
		for range 1000 {
			text = g.AppendError(g.Append(text, noon), noon)
		}
		return string(text)
	}
	text := made(3)
	if text != made(3) || text == made(4) {
		t.Error("entries are not those of a seed")
	}
	for _, s := range shop {
		if !strings.Contains(text, s.name) {
			t.Errorf("%s never fails", s.name)
		}
	}
}
