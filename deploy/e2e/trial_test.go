package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/client"
)

// A trial is one post with the answer that the interface promises.
type trial struct {
	name     string
	batch    client.Batch
	entries  []sent   // those to be accepted
	rejected int      // number of the others
	status   int      // 0 means 200
	code     string   // of a refusal; "" is not checked
	faults   []string // "index pointer code" of each
}

// Sizes of the interface, in bytes.
const (
	maxMessage  = 10 << 10
	maxMetadata = 100 << 10
)

// Entries that the interface refuses, each with the fault that the
// answer must name.
const (
	noLevel    = `{"timestamp":"2026-11-21T09:30:00Z","message":"no level"}`
	withOffset = `{"timestamp":"2026-11-21T09:30:00+02:00","level":"info","message":"not UTC"}`
)

// trials are the scenario's posts with particular answers.
func trials(t *testing.T, m *maker) []trial {
	t.Helper()
	valid, spaced, mixed, zipped, thousand := m.some(5), m.some(7), m.some(8), m.some(40), m.some(1000)
	largest := m.sized(maxMessage, maxMetadata)
	odd := m.odd()
	withInvalid := append([]string{noLevel}, append(texts(mixed), withOffset)...)
	mixedFaults := []string{"0 /logs/0/level", "9 /logs/9/timestamp invalid_timestamp"}
	return []trial{
		{name: "valid", batch: plainly(body(texts(valid)...)), entries: valid},
		{name: "with white space", batch: plainly(spread(t, body(texts(spaced)...))), entries: spaced},
		{name: "mixed", batch: plainly(body(withInvalid...)), entries: mixed, rejected: 2, faults: mixedFaults},
		{name: "strict", batch: client.Batch{Body: body(withInvalid...), Strict: true}, status: 400, faults: mixedFaults},
		{name: "invalid", batch: plainly(body(noLevel, withOffset)), status: 400, faults: []string{"0 /logs/0/level", "1 /logs/1/timestamp invalid_timestamp"}},
		{name: "gzip", batch: client.Batch{Body: zip(t, body(texts(zipped)...)), Encoding: "gzip"}, entries: zipped},
		{name: "1,000 entries", batch: plainly(body(texts(thousand)...)), entries: thousand},
		{name: "1,001 entries", batch: plainly(body(texts(m.some(1001))...)), status: 400, code: "batch_too_large"},
		{name: "no entries", batch: plainly(body()), status: 400, code: "empty_batch"},
		{name: "largest message and metadata", batch: plainly(body(largest.text)), entries: []sent{largest}},
		{name: "a message one byte too large", batch: plainly(body(m.sized(maxMessage+1, 100).text)), status: 400, faults: []string{"0 /logs/0/message message_too_large"}},
		{name: "metadata one byte too large", batch: plainly(body(m.sized(100, maxMetadata+1).text)), status: 400, faults: []string{"0 /logs/0/metadata metadata_too_large"}},
		{name: "odd but legal", batch: plainly(body(texts(odd)...)), entries: odd},
		{name: "not JSON", batch: plainly([]byte(`{"logs":[}`)), status: 400},
	}
}

func plainly(body []byte) client.Batch { return client.Batch{Body: body} }

// sized returns an entry whose message and compact metadata have
// exactly these many bytes.
func (m *maker) sized(message, metadata int) sent {
	n := m.serial.Add(1)
	head := fmt.Sprintf("%s large entry %d ", m.mark, n)
	return sent{text: fmt.Sprintf(`{"timestamp":"%s","level":"warn","message":"%s","metadata":{"fill":"%s"}}`, m.stamp(n),
		head+strings.Repeat("m", message-len(head)), strings.Repeat("d", metadata-len(`{"fill":""}`)))}
}

// odd returns entries whose text any careless re-encoding would change.
func (m *maker) odd() []sent {
	var entries []sent
	for _, rest := range []string{
		`"metadata":{"big":123456789012345678901234567890,"exp":1E400,"zero":-0,"dec":1.10}`,
		`"metadata":{"twice":1,"twice":2,"":null}`,
		`"metadata":{"nul":"a\u0000b","slash":"\/","e":"\u00e9","é":"日本語 🙂","html":"<&>"}`,
		`"unknown_field":[1,{"kept":true}],"project_id":"mine"`,
		`"environment":"staging","error":null,"metadata":null`,
	} {
		n := m.serial.Add(1)
		entries = append(entries, sent{text: fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"%s odd %d \"quoted\"\n",%s}`, m.stamp(n), m.mark, n, rest)})
	}
	return entries
}

// spread writes a body with white space wherever JSON allows it.
func spread(t *testing.T, compact []byte) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := json.Indent(&text, compact, " ", "\t"); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func zip(t *testing.T, text []byte) []byte {
	t.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return zipped.Bytes()
}
