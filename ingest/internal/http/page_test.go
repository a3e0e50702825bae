package http

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

// An entry is answered byte for byte: nothing is escaped again.
func TestEntriesAreWrittenAsTheyAre(t *testing.T) {
	texts := []string{`{"message":"<&> \u2028 \/ ` + "\u2028" + `","metadata":{"a":1.50e1,"a":-0}}`, `{"message":"` + strings.Repeat("<", 20<<10) + `"}`}
	var out memory
	next := "n"
	p := page{organization: "org_1", next: &next}
	for i, text := range texts {
		p.found = append(p.found, ingest.Found{Project: "prj_1", Stored: ingest.Stored{Place: ingest.Place{Index: i}, Environment: `a"b`, Text: []byte(text)}})
	}
	testenv.Must(t, p.write(&out))
	var read struct {
		Items []struct {
			ID, Project, Environment string
			Entry                    json.RawMessage
		}
		Next string `json:"next_cursor"`
	}
	if err := json.Unmarshal(out.Bytes(), &read); err != nil || len(read.Items) != 2 || read.Next != "n" || out.Len() > len(texts[0])+len(texts[1])+1<<10 {
		t.Fatalf("%v: %.300s", err, out.String())
	}
	for i, item := range read.Items {
		if string(item.Entry) != texts[i] || item.Environment != `a"b` || !strings.HasSuffix(item.ID, "-"+string(rune('0'+i))) {
			t.Errorf("item %d is %.100s", i, item.Entry)
		}
	}
}

// memory is where a page is written to.
type memory struct{ bytes.Buffer }

func (m *memory) Flush() error { return nil }

// Writing a page allocates nothing that grows with it: six idle clients
// hold six pages, not twelve.
func TestAPageIsNotCopied(t *testing.T) {
	p := page{found: make([]ingest.Found, 16)}
	text := []byte(`{"message":"` + strings.Repeat("<", 500<<10) + `"}`)
	for i := range p.found {
		p.found[i].Text = text
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	testenv.Must(t, p.write(bufio.NewWriter(io.Discard)))
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256<<10 {
		t.Errorf("%d bytes are allocated to write a page", allocated)
	}
}
