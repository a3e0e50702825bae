package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// A sent entry is one line from a client: its compact text, and its
// kind of error, if any.
type sent struct {
	text string
	kind string
}

// A maker generates entries, no two alike. Safe for concurrent use.
type maker struct {
	mark   string // in every message: its entry's owner
	serial atomic.Int64
}

// levels are all levels.
var levels = []string{"debug", "info", "warn", "error", "fatal"}

// plain returns an entry without an error.
func (m *maker) plain() sent {
	n := m.serial.Add(1)
	return sent{text: fmt.Sprintf(`{"timestamp":"%s","level":"%s","message":"%s entry %d of the scenario","environment":"prod",`+
		`"metadata":{"n":%d,"host":"web-%d","nested":{"list":[1,2.50,1e3,true,null]}}}`, m.stamp(n), levels[n%3], m.mark, n, n, n%7)}
}

// stamp returns an event time a little in the past, different for
// neighbours, sometimes without a fraction.
func (m *maker) stamp(n int64) string {
	at := time.Now().UTC().Add(-time.Duration(n%60) * time.Second)
	if n%10 == 0 {
		return at.Format("2006-01-02T15:04:05Z")
	}
	return at.Format("2006-01-02T15:04:05.000000Z")
}

// failing returns an entry with an error of the given language. Ids, hosts
// and a few line numbers differ each time; the kind of error is the same.
func (m *maker) failing(language string) sent {
	n := m.serial.Add(1)
	fill := strings.NewReplacer("{id}", fmt.Sprint(10_000+n), "{line}", fmt.Sprint(40+n%4), "{hex}", fmt.Sprintf("%08x", n*2654435761&0xffffffff))
	kind := kinds[language]
	return sent{kind: kind.class, text: fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"%s failure %d","error":{"type":"%s","message":"%s",`+
		`"stack_trace":["%s"],"context":{"attempt":%d}}}`, m.stamp(n), m.mark, n, kind.class, fill.Replace(kind.message),
		fill.Replace(strings.Join(kind.frames, `","`)), n%3)}
}

// A kind of error, as JSON text with placeholders.
type kind struct {
	class, message string
	frames         []string
}

// kinds has one error of each language; the classes differ, so each has
// its own group.
var kinds = map[string]kind{
	"javascript": {"TypeError", "Cannot read properties of undefined (reading 'id_{id}')", []string{
		"at Cart.total (/srv/shop/src/cart.js:{line}:13)", "at checkout (/srv/shop/src/checkout.js:88:20)"}},
	"python": {"KeyError", "'order_{id}'", []string{
		`File \"/app/billing/api.py\", line 61, in render`, `File \"/app/billing/tax.py\", line {line}, in rate_for`}},
	"java": {"java.lang.NullPointerException", "shard is null for document {id}", []string{
		"at com.acme.search.Index.query(Index.java:{line})", "at com.acme.search.SearchController.search(SearchController.java:42)"}},
	"go": {"runtime.boundsError", "runtime error: index out of range [{id}] with length 7", []string{
		"main.(*Pool).take(0xc000{hex}, 0x2)", `\t/src/courier/pool.go:{line} +0x1d8`, "main.main()", `\t/src/courier/main.go:44 +0x2b1`}},
	"ruby": {"NoMethodError", "undefined method 'name' for user {id}", []string{
		"/srv/mailer/app/models/recipient.rb:{line}:in 'greeting'", "/srv/mailer/app/jobs/deliver_job.rb:12:in 'perform'"}},
	"php": {"PDOException", "SQLSTATE[HY000] [2002] Connection refused by host {id}", []string{
		"#0 /var/www/src/Orders.php({line}): PDO->__construct()", "#1 /var/www/public/index.php(21): Acme\\\\Report->render({id})", "#2 {main}"}},
	"dotnet": {"System.InvalidOperationException", "Sequence {id} contains no elements", []string{
		"at Acme.Payments.Ledger.Latest(Guid account) in /src/Acme.Payments/Ledger.cs:line {line}",
		"at Acme.Payments.Gateway.Capture(String id) in /src/Acme.Payments/Gateway.cs:line 64"}},
}

// languages are the keys of kinds in a fixed order.
var languages = []string{"javascript", "python", "java", "go", "ruby", "php", "dotnet"}

// some returns n entries, every tenth with an error, the languages in turn.
func (m *maker) some(n int) []sent {
	entries := make([]sent, n)
	for i := range entries {
		if i%10 == 9 {
			entries[i] = m.failing(languages[int(m.serial.Load())%len(languages)])
		} else {
			entries[i] = m.plain()
		}
	}
	return entries
}

// texts returns entries' compact texts.
func texts(entries []sent) []string {
	all := make([]string, len(entries))
	for i, entry := range entries {
		all[i] = entry.text
	}
	return all
}

// body returns the most compact body of a post of entries.
func body(entries ...string) []byte {
	return []byte(`{"logs":[` + strings.Join(entries, ",") + `]}`)
}

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
	testenv.Must(t, json.Indent(&text, compact, " ", "\t"))
	return text.Bytes()
}

func zip(t *testing.T, text []byte) []byte {
	t.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, w.Close())
	return zipped.Bytes()
}
