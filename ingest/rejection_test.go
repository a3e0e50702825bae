package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/ingest"
)

// Each code has how many entries were rejected for it, and the first three of
// them as they were sent, also beyond the faults that are listed.
func TestRejections(t *testing.T) {
	const good = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"a"}`
	logs := []string{good}
	for i := range 150 {
		logs = append(logs, fmt.Sprintf(`{ "timestamp": "now", "level": 7, "message": "n%d", "error": {"type": 1, "message": 2}}`, i), good)
	}
	long := `{"timestamp":"2026-01-31T12:00:00Z","level":"LOUD","message":" ` + strings.Repeat("é", 1000) + `"}`
	logs = append(logs, long)
	batch, err := ingest.NewParser(ingest.DefaultLimits()).Parse([]byte(`{"logs":[` + strings.Join(logs, ",") + `]}`))
	if err != nil || batch.Rejected != 151 || !batch.FaultsTruncated || len(batch.Accepted) != 151 {
		t.Fatalf("%d rejected, %v", batch.Rejected, err)
	}
	entries := map[ingest.Code]int64{}
	for i := range batch.Rejections {
		of := &batch.Rejections[i]
		entries[of.Code] = of.Entries
		for j := range of.Samples {
			sample := &of.Samples[j]
			text := sample.Kept(time.Time{}).Text
			want := fmt.Sprintf(`{"timestamp":"now","level":7,"message":"n%d","error":{"type":1,"message":2}}`, j)
			at := fmt.Sprintf("/logs/%d/", 2*j+1)
			if of.Code == ingest.CodeInvalidLevel {
				want, at = long[:len(text)], "/logs/301/level"
			}
			if text != want || !strings.HasPrefix(sample.Pointer, at) || sample.Detail == "" || sample.Fix == "" || sample.Cut != (of.Code == ingest.CodeInvalidLevel) {
				t.Errorf("%s: got %s at %s, want %s at %s; cut %t", of.Code, text, sample.Pointer, want, at, sample.Cut)
			}
			if len(text) > ingest.SampleBytes || !utf8.ValidString(text) {
				t.Errorf("%d bytes, valid %t", len(text), utf8.ValidString(text))
			}
		}
	}
	if len(entries) != 3 || entries[ingest.CodeInvalidTimestamp] != 150 || entries[ingest.CodeInvalidType] != 150 || entries[ingest.CodeInvalidLevel] != 1 {
		t.Errorf("got %v", entries)
	}
}

// A body that can't be read shows where, and never a key.
func TestNear(t *testing.T) {
	key := "weir_" + strings.Repeat("0a", 24)
	for name, c := range map[string]struct{ body, near string }{
		"in an entry":        {`{"logs":[ {"message" : "a"}, {"message" : oops } ]}`, `{"logs":[ {"message":oops } ]}`},
		"behind an entry":    {`{"logs":[{"message":"a"} {}]}`, `{"logs":[{"message":"a"} {}]}`},
		"no object":          {`["a"]`, `["a"]`},
		"the body has a key": {`{"api_key":"` + key + `","logs":[x]}`, `{"api_key":"weir_…","logs":[x]}`},
		"a key at the cut":   {`{"a":"` + key + `","` + strings.Repeat("b", 489) + `":x}`, `","` + strings.Repeat("b", 489) + `":x}`},
	} {
		t.Run(name, func(t *testing.T) {
			for parser, parse := range map[string]func() error{
				"strict": func() error {
					_, err := ingest.NewParser(ingest.DefaultLimits()).Parse([]byte(c.body))
					return err
				},
				"lenient": func() error {
					_, err := new(ingest.Normalizer).Normalize([]byte(c.body), false, new(strings.Builder))
					return err
				},
			} {
				var invalid *ingest.BodyError
				if !errors.As(parse(), &invalid) {
					continue // lenient
				}
				sample := ingest.Sample{Text: invalid.Near}
				got := sample.Kept(time.Time{}).Text
				if strings.Contains(got, "0a0a") || parser == "strict" && !strings.HasSuffix(got, c.near) {
					t.Errorf("%s: got %s, want %s", parser, got, c.near)
				}
			}
		})
	}
}

// What is kept of a sample is text that a database stores, without credentials.
func TestKept(t *testing.T) {
	key := "weirses_" + strings.Repeat("0a", 24)
	sample := ingest.Sample{Text: []byte("a\x00b\xff" + strings.Repeat("x", 2000)), Pointer: "/" + key, Detail: key[:40] + " is not a level.", Fix: "f"}
	kept := sample.Kept(time.Time{})
	if !strings.HasPrefix(kept.Text, "a\ufffdb\ufffdxx") || len(kept.Text) != ingest.SampleBytes {
		t.Errorf("got %.20q, %d bytes", kept.Text, len(kept.Text))
	}
	if kept.Pointer != "/weir_…" || kept.Detail != "weir_… is not a level." || kept.Fix != "f" {
		t.Errorf("got %+v", kept)
	}
}
