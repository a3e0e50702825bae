package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
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
