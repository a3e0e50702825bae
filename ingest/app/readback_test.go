package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// Accepted entries are found byte for byte, once, in order, whatever
// their spelling.
func testReadBack(t *testing.T, r *rig, p *replica) {
	r.account("org_read", nil)
	r.account("org_not_read", nil)
	key, foreign := r.key("org_read", "prj_read", nil), r.key("org_not_read", "prj_not_read", nil)
	p.admits(key, foreign)
	sent := []string{
		`{"timestamp":"2026-01-01T00:00:00Z","level":"warn","message":"\u0000 <&> \u2028 é \ud83d\ude00 \/","metadata":{"a":1e400,"a":-0.0,"b":12345678901234567890}}`,
		`{"level":"error","timestamp":"2026-01-01T00:00:00.000000001Z","message":"","zzz":[{},[],null,true],"error":{"stack_trace":[],"context":{"x":1,"x":2}}}`,
		`{"message":"日本語","environment":null,"timestamp":"9999-12-31T23:59:59.999999999Z","level":"debug"}`,
	}
	if got := p.post(key, bodyOf(sent...)); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	var got []string
	testenv.Eventually(t, func() error {
		got = nil
		page := p.get(key, "/v1/logs?order=asc")
		got = append(got, entriesOf(t, page.text)...)
		if len(got) < len(sent) {
			return fmt.Errorf("found %d of %d: %s", len(got), len(sent), page.text)
		}
		return nil
	})
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", sent) {
		t.Errorf("got\n%q, want\n%q", got, sent)
	}
	if page := p.get(foreign, "/v1/logs"); !strings.Contains(string(page.text), `"items":[]`) {
		t.Errorf("another organization sees %s", page.text)
	}
	if page := p.get(foreign, "/v1/logs?project=prj_read"); page.status != 404 || page.code() != "not_found" {
		t.Errorf("foreign project: %d", page.status)
	}
}

// entriesOf returns the texts of a page's entries, byte for byte.
func entriesOf(t *testing.T, text []byte) (entries []string) {
	t.Helper()
	var page struct {
		Items []struct{ Entry json.RawMessage }
	}
	if err := json.Unmarshal(text, &page); err != nil {
		t.Fatalf("cannot read %.200s: %v", text, err)
	}
	for _, item := range page.Items {
		entries = append(entries, string(item.Entry))
	}
	return entries
}

// A request larger than a record is cut into parts and found whole.
func testReadBackLargeRequest(t *testing.T, r *rig, p *replica) {
	r.account("org_large", nil)
	key := r.key("org_large", "prj_large", nil)
	p.admits(key)
	entries := make([]string, 1000)
	charged := int64(0)
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("entry %d", i), `,"metadata":{"x":"`+strings.Repeat("é", 5000)+`"}`)
		charged += int64(len(entries[i]))
	}
	got := p.post(key, compressed(t, bodyOf(entries...), zstded), "Content-Encoding", "zstd")
	if got.status != 200 || got.number("bytes_used") != charged || got.number("processed") != 1000 {
		t.Fatalf("%d %s, want %d bytes", got.status, got.text, charged)
	}
	testenv.Eventually(t, func() error {
		seen := map[string]bool{}
		for cursor := ""; ; {
			page := p.get(key, "/v1/logs?limit=1000"+cursor)
			for _, e := range entriesOf(t, page.text) {
				seen[e] = true
			}
			next, more := page.body["next_cursor"].(string)
			if !more {
				break
			}
			cursor = "&cursor=" + next
		}
		for _, e := range entries {
			if !seen[e] {
				return fmt.Errorf("%d of 1000 are there", len(seen))
			}
		}
		return nil
	})
}

// A project's key reads only that project; others look missing. A
// write-only key reads nothing and gets the reason. Both write.
func testKeysThatReadLess(t *testing.T, r *rig, p *replica) {
	r.account("org_less", nil)
	access := func(access string) func(*contract.Credential) {
		return func(c *contract.Credential) { c.Access = access }
	}
	full, other := r.key("org_less", "prj_less", nil), r.key("org_less", "prj_not_less", nil)
	own, write, newer := r.key("org_less", "prj_less", access(contract.AccessProject)), r.key("org_less", "prj_less", access(contract.AccessWrite)), r.key("org_less", "prj_less", access("errors"))
	p.admits(full, other, own, write, newer)
	for i, key := range []string{full, other, own, write} {
		if got := p.post(key, bodyOf(fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:0%dZ","level":"info","message":"%d"}`, i, i))); got.status != 200 {
			t.Fatalf("key %d writes: %d %s", i, got.status, got.text)
		}
	}
	reads := func(key, query string, want int) func() error {
		return func() error {
			got := p.get(key, "/v1/logs"+query)
			if found := entriesOf(t, got.text); got.status != 200 || len(found) != want {
				return fmt.Errorf("GET /v1/logs%s: %d with %q, want %d entries", query, got.status, found, want)
			}
			return nil
		}
	}
	testenv.Eventually(t, reads(full, "", 4))
	for _, err := range []error{reads(own, "", 3)(), reads(own, "?project=prj_less", 3)(), reads(own, "?limit=1", 1)(), reads(other, "?project=prj_less", 3)()} {
		if err != nil {
			t.Error(err)
		}
	}
	hidden, unknown := p.get(own, "/v1/logs?project=prj_not_less"), p.get(own, "/v1/logs?project=prj_0")
	if hidden.status != 404 || unknown.status != 404 || hidden.code() != unknown.code() {
		t.Errorf("another project: %d %s; an unknown one: %d %s", hidden.status, hidden.text, unknown.status, unknown.text)
	}
	for _, key := range []string{write, newer} { // an access of a newer version reads nothing here
		if got := p.get(key, "/v1/logs"); got.status != 403 || got.code() != "forbidden" {
			t.Errorf("a key that may only write reads: %d %s", got.status, got.text)
		}
	}
}
