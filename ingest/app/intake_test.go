package app_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv"
)

func compressed(t testing.TB, body []byte, open func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := open(&out)
	if err == nil {
		_, err = w.Write(body)
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(w io.Writer) (io.WriteCloser, error)  { return gzip.NewWriter(w), nil }
func zlibbed(w io.Writer) (io.WriteCloser, error)  { return zlib.NewWriter(w), nil }
func deflated(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 5) }
func zstded(w io.Writer) (io.WriteCloser, error)   { return zstd.NewWriter(w) }

// Every status and code of the interface, over HTTPS, on a real broker.
func TestPostStatuses(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	r.account("org_full", func(a *contract.Account) { a.Quota, a.Used, a.State = 100, 100, contract.AccountExhausted })
	r.account("org_small", func(a *contract.Account) { a.Quota, a.Used = 100, 90 })
	r.account("org_suspended", func(a *contract.Account) { a.State = contract.AccountSuspended })
	past := time.Now().Add(-time.Hour)
	good := r.key("org_a", "prj_a", nil)
	revoked := r.key("org_a", "prj_a", func(c *contract.Credential) { c.State = contract.CredentialRevoked })
	expired := r.key("org_a", "prj_a", func(c *contract.Credential) { c.ExpiresAt = &past })
	slow := r.key("org_a", "prj_a", func(c *contract.Credential) { c.RatePerMinute = 1 })
	full, small := r.key("org_full", "prj_full", nil), r.key("org_small", "prj_small", nil)
	suspended, stranger := r.key("org_suspended", "prj_s", nil), r.key("org_unknown", "prj_u", nil)
	p := r.start(func(c *app.Config) { c.MaxBodyBytes = 1 << 20 })
	p.post(slow, bodyOf(entry("takes the key's only token")))

	fine := bodyOf(entry("m"))
	var gone [24]byte
	unknown := "weir_" + fmt.Sprintf("%x", gone)
	bomb := compressed(t, bytes.Repeat([]byte(" "), 64<<20), gzipped)
	for _, c := range []struct {
		name    string
		key     string
		body    []byte
		headers []string
		status  int
		code    string
	}{
		{"accepted", good, fine, nil, 200, ""},
		{"charset", good, fine, []string{"Content-Type", "application/json; charset=UTF-8"}, 200, ""},
		{"gzip", good, compressed(t, fine, gzipped), []string{"Content-Encoding", "gzip"}, 200, ""},
		{"zstd", good, compressed(t, fine, zstded), []string{"Content-Encoding", "zstd"}, 200, ""},
		{"deflate", good, compressed(t, fine, zlibbed), []string{"Content-Encoding", "deflate"}, 200, ""},
		{"bare deflate", good, compressed(t, fine, deflated), []string{"Content-Encoding", "deflate"}, 200, ""},
		{"identity", good, fine, []string{"Content-Encoding", "identity"}, 200, ""},
		{"no key", "", fine, nil, 401, "missing_api_key"},
		{"no key, no body", "", nil, nil, 401, "missing_api_key"},
		{"no key, no JSON", "", []byte("{"), nil, 401, "missing_api_key"},
		{"unknown key", unknown, fine, nil, 401, "invalid_api_key"},
		{"malformed key", "weir_x", fine, nil, 401, "invalid_api_key"},
		{"revoked key", revoked, fine, nil, 401, "api_key_revoked"},
		{"expired key", expired, fine, nil, 401, "api_key_expired"},
		{"wrong key in the header, right one in the body", unknown, []byte(`{"api_key":"` + good + `","logs":[` + entry("m") + `]}`), nil, 401, "invalid_api_key"},
		{"wrong key in the body", "", []byte(`{"api_key":"` + unknown + `","logs":[` + entry("m") + `]}`), nil, 401, "invalid_api_key"},
		{"no string as key in the body", "", []byte(`{"api_key":5,"logs":[` + entry("m") + `]}`), nil, 401, "invalid_api_key"},
		{"rate", slow, fine, nil, 429, "rate_limited"},
		{"no quota left", full, fine, nil, 429, "quota_exceeded"},
		{"quota does not cover it", small, fine, nil, 429, "quota_exceeded"},
		{"suspended", suspended, fine, nil, 429, "quota_exceeded"},
		{"account not known", stranger, fine, nil, 500, "unavailable"},
		{"quota before body", full, []byte("no JSON"), nil, 429, "quota_exceeded"},
		{"media type", good, fine, []string{"Content-Type", "text/plain"}, 400, "unsupported_media_type"},
		{"other charset", good, fine, []string{"Content-Type", "application/json; charset=latin1"}, 400, "unsupported_media_type"},
		{"no media type", good, fine, []string{"Content-Type", ""}, 400, "unsupported_media_type"},
		{"encoding", good, fine, []string{"Content-Encoding", "br"}, 400, "unsupported_encoding"},
		{"stacked encodings", good, fine, []string{"Content-Encoding", "gzip, gzip"}, 400, "unsupported_encoding"},
		{"not what its encoding says", good, fine, []string{"Content-Encoding", "gzip"}, 400, "invalid_encoding"},
		{"cut off", good, compressed(t, fine, gzipped)[:20], []string{"Content-Encoding", "gzip"}, 400, "invalid_encoding"},
		{"bomb", good, bomb, []string{"Content-Encoding", "gzip"}, 400, "body_too_large"},
		{"body too large", good, bytes.Repeat([]byte(" "), 1<<20+1), nil, 400, "body_too_large"},
		{"largest body", good, append(bytes.Repeat([]byte(" "), 1<<20-len(fine)), fine...), nil, 200, ""},
		{"idempotency key too long", good, fine, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "invalid_idempotency_key"},
		{"no JSON", good, []byte("x"), nil, 400, "invalid_json"},
		{"nothing", good, nil, nil, 400, "invalid_json"},
		{"no logs", good, []byte("{}"), nil, 400, "missing_field"},
		{"empty batch", good, bodyOf(), nil, 400, "empty_batch"},
		{"too many entries", good, bodyOf(strings.Split(strings.Repeat("0 ", 1001), " ")[:1001]...), nil, 400, "batch_too_large"},
		{"name twice", good, []byte(`{"logs":[` + entry("m") + `],"logs":[]}`), nil, 400, "duplicate_field"},
		{"no valid entry", good, bodyOf("{}", "5"), nil, 400, "invalid_entries"},
		{"strict", good, bodyOf(entry("m"), "{}"), []string{"Prefer", "handling=strict"}, 400, "invalid_entries"},
		{"mixed", good, bodyOf(entry("m"), "{}"), nil, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := p.post(c.key, c.body, c.headers...)
			if got.status != c.status || c.code != "" && got.code() != c.code {
				t.Fatalf("got %d %s, want %d %s", got.status, got.text, c.status, c.code)
			}
			if got.status == 401 && got.header.Get("WWW-Authenticate") != "ApiKey" {
				t.Errorf("401 without WWW-Authenticate: %v", got.header)
			}
			authenticated := got.status != 401 && c.key != stranger
			if (got.header.Get("X-RateLimit-Limit") != "") != authenticated {
				t.Errorf("limits: %v", got.header)
			}
			if c.code == "quota_exceeded" && got.body["resets_at"] == nil {
				t.Errorf("no resets_at: %s", got.text)
			}
		})
	}
	if got := p.send(http.MethodPut, "/v1/logs", good, nil); got.status != 405 {
		t.Errorf("PUT: %d", got.status)
	}
	if got := p.send(http.MethodPost, "/v1/nothing", good, nil); got.status != 404 {
		t.Errorf("unknown path: %d", got.status)
	}
	response, err := http.Post("http"+strings.TrimPrefix(p.url, "https")+"/v1/logs", "application/json", bytes.NewReader(fine))
	if err != nil || response.StatusCode != 403 {
		t.Fatalf("plain HTTP: %v, %v", response, err)
	}
	_ = response.Body.Close()
}

// The answers to a good, a mixed and a strict request say exactly what was accepted, charged and refused.
func TestPostAnswers(t *testing.T) {
	r := newRig(t)
	account := r.account("org_a", func(a *contract.Account) { a.Quota, a.Used = 1000, 100 })
	key := r.key("org_a", "prj_a", nil)
	p := r.start(nil)

	first, second := entry("one"), entry("two", `,"error":{"type":"E"}`)
	charged := int64(len(first) + len(second))
	got := p.post(key, bodyOf(" "+first, `{"timestamp":"x","level":"info","message":"m"}`, strings.Replace(second, ",", " , ", 2)))
	if got.body["message"] != "Accepted 2 of 3 entries; 1 rejected" || got.number("processed") != 2 || got.number("rejected") != 1 || got.number("bytes_used") != charged {
		t.Errorf("got %s", got.text)
	}
	faults, _ := got.body["errors"].([]any)
	fault, _ := faults[0].(map[string]any)
	if len(faults) != 1 || fault["index"] != float64(1) || fault["pointer"] != "/logs/1/timestamp" || fault["code"] != "invalid_timestamp" || fault["detail"] == "" || fault["fix"] == "" {
		t.Errorf("errors: %v", faults)
	}
	quota, _ := got.body["quota"].(map[string]any)
	want := map[string]any{"limit": 1000.0, "used": float64(100 + charged), "remaining": float64(900 - charged), "resets_at": account.PeriodEnd.Format(time.RFC3339)}
	if fmt.Sprint(quota) != fmt.Sprint(want) {
		t.Errorf("quota: %v, want %v", quota, want)
	}
	if got := p.post(key, bodyOf(first)); got.body["message"] != "Accepted 1 entry" {
		t.Errorf("got %s", got.text)
	}
	strict := p.post(key, bodyOf(first, "{}"), "Prefer", "handling=strict")
	if strict.status != 400 || strict.header.Get("Preference-Applied") != "handling=strict" {
		t.Errorf("strict: %d %v", strict.status, strict.header)
	}
}

// The headers tell the tightest level: what is left, and when it is full again; the 1st request too many is refused and
// told when to come back, and takes no token.
func TestPostRateLimits(t *testing.T) {
	r := newRig(t)
	r.account("org_a", func(a *contract.Account) { a.RequestsPerMinute = 60 })
	wide, narrow := r.key("org_a", "prj_a", nil), r.key("org_a", "prj_b", func(c *contract.Credential) { c.RatePerMinute = 2 })
	now := time.Now()
	p := r.start(func(c *app.Config) { c.Clock = func() time.Time { return now } })

	for i := range 2 {
		got := p.post(narrow, bodyOf(entry("m")))
		if got.status != 200 || got.header.Get("X-RateLimit-Scope") != "key" || got.header.Get("X-RateLimit-Limit") != "2" || got.header.Get("X-RateLimit-Remaining") != strconv.Itoa(1-i) {
			t.Errorf("request %d: %d %v", i, got.status, got.header)
		}
	}
	got := p.post(narrow, bodyOf(entry("m")))
	reset, _ := strconv.ParseInt(got.header.Get("X-RateLimit-Reset"), 10, 64)
	if got.status != 429 || got.header.Get("Retry-After") != "30" || reset < now.Unix()+60 || reset > now.Unix()+61 {
		t.Errorf("refused: %d %v", got.status, got.header)
	}
	for i := range 58 {
		if got := p.post(wide, []byte("no JSON, and yet it counts")); got.status != 400 || got.header.Get("X-RateLimit-Remaining") != strconv.Itoa(57-i) || got.header.Get("X-RateLimit-Scope") != "organization" {
			t.Fatalf("request %d: %d %v", i, got.status, got.header)
		}
	}
	if got := p.post(wide, bodyOf(entry("m"))); got.status != 429 || got.header.Get("X-RateLimit-Remaining") != "0" || got.header.Get("X-RateLimit-Scope") != "organization" || got.header.Get("Retry-After") != "1" {
		t.Errorf("61st: %d %v", got.status, got.header)
	}
	policy := got.header.Get("RateLimit-Policy")
	if !strings.HasPrefix(policy, `"organization";q=60;w=60, "project";q=60;w=60, "key";q=2;w=60, "quota";q=1099511627776;qu="content-bytes";w=`) {
		t.Errorf("policy %q", policy)
	}
	if limit := got.header.Get("RateLimit"); !strings.HasPrefix(limit, `"key";r=0;t=60, "quota";r=`) {
		t.Errorf("limit %q", limit)
	}
}

// Requests without a valid key are limited per client address; a valid key is not touched by that, in header or body.
func TestPostLimitsStrangers(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	now := time.Now()
	p := r.start(func(c *app.Config) { c.ClientsPerMinute = 3; c.Clock = func() time.Time { return now } })
	legacy := []byte(`{"api_key":"` + key + `","logs":[` + entry("m") + `]}`)
	for range 5 {
		if got := p.post("", legacy); got.status != 200 || got.header.Get("Deprecation") == "" || got.header.Get("Sunset") == "" || got.header.Get("Link") == "" {
			t.Fatalf("key in the body: %d %s %v", got.status, got.text, got.header)
		}
	}
	for range 3 {
		if got := p.post("weir_guess", bodyOf(entry("m"))); got.status != 401 {
			t.Fatalf("guess: %d", got.status)
		}
	}
	if got := p.post("weir_guess", bodyOf(entry("m"))); got.status != 429 || got.code() != "rate_limited" {
		t.Errorf("4th guess: %d %s", got.status, got.text)
	}
	if got := p.post(key, bodyOf(entry("m"))); got.status != 200 || got.header.Get("Deprecation") != "" {
		t.Errorf("valid key: %d", got.status)
	}
}

// A change of a credential or an account is in force within a second.
func TestPostFollowsState(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	p := r.start(nil)
	key := r.key("org_a", "prj_a", nil)
	within := func(what string, status int, code string) {
		t.Helper()
		testenv.Eventually(t, time.Second, func() error {
			if got := p.post(key, bodyOf(entry("m"))); got.status != status || code != "" && got.code() != code {
				return fmt.Errorf("%s: %d %s", what, got.status, got.text)
			}
			return nil
		})
	}
	within("issued", 200, "")
	r.account("org_a", func(a *contract.Account) { a.State = contract.AccountSuspended })
	within("suspended", 429, "quota_exceeded")
	r.account("org_a", nil)
	within("restored", 200, "")
	r.Say(contract.TopicCredentials, contract.TypeCredentialChanged, contract.CredentialKey(key), contract.Credential{
		Kind: contract.CredentialAPIKey, ID: "k", Organization: "org_a", Project: "prj_a", State: contract.CredentialRevoked, Version: 2,
	})
	within("revoked", 401, "api_key_revoked")
}

// What was accepted is found again byte for byte, once, in order, whatever its spelling.
func TestReadBack(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	r.account("org_b", nil)
	key, foreign := r.key("org_a", "prj_a", nil), r.key("org_b", "prj_b", nil)
	p := r.start(nil)
	sent := []string{
		`{"timestamp":"2026-01-01T00:00:00Z","level":"warn","message":"\u0000 é \ud83d\ude00 \/","metadata":{"a":1e400,"a":-0.0,"b":12345678901234567890}}`,
		`{"level":"error","timestamp":"2026-01-01T00:00:00.000000001Z","message":"","zzz":[{},[],null,true],"error":{"stack_trace":[],"context":{"x":1,"x":2}}}`,
		`{"message":"日本語","environment":null,"timestamp":"9999-12-31T23:59:59.999999999Z","level":"debug"}`,
	}
	if got := p.post(key, bodyOf(sent...)); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	var got []string
	testenv.Eventually(t, patience, func() error {
		got = nil
		page := p.get(key, "/v1/logs?order=asc")
		items, _ := page.body["items"].([]any)
		for _, item := range items {
			member, _ := item.(map[string]any)
			got = append(got, fmt.Sprint(member["entry"]))
		}
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
	if page := p.get(foreign, "/v1/logs?project=prj_a"); page.status != 404 || page.code() != "not_found" {
		t.Errorf("foreign project: %d", page.status)
	}
}

// A request larger than a record is cut into parts and comes back whole.
func TestReadBackLargeRequest(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	p := r.start(nil)
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
	testenv.Eventually(t, patience, func() error {
		seen := map[string]bool{}
		for cursor := ""; ; {
			page := p.get(key, "/v1/logs?limit=1000"+cursor)
			items, _ := page.body["items"].([]any)
			for _, item := range items {
				member, _ := item.(map[string]any)
				seen[fmt.Sprint(member["entry"])] = true
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

// A repeated Idempotency-Key has the effect of one request: on the replica that knows it, and on another one.
func TestIdempotency(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	other := r.key("org_a", "prj_other", nil)
	here, there := r.start(nil), r.start(nil)
	body := bodyOf(entry("once"), "{}")
	var first answer
	for i, p := range []*replica{here, here, there, there} {
		got := p.post(key, body, "Idempotency-Key", "k-1")
		if got.status != 200 || got.number("processed") != 1 || got.number("rejected") != 1 {
			t.Fatalf("attempt %d: %d %s", i, got.status, got.text)
		}
		if replayed := got.header.Get("Idempotency-Replayed") == "true"; replayed != (i%2 == 1) {
			t.Errorf("attempt %d: replayed %t", i, replayed)
		}
		if i == 0 {
			first = got
		} else if got.number("bytes_used") != first.number("bytes_used") {
			t.Errorf("attempt %d: %s", i, got.text)
		}
	}
	if got := here.post(key, bodyOf(entry("another")), "Idempotency-Key", "k-1"); got.status != 400 || got.code() != "idempotency_key_reused" {
		t.Errorf("other body: %d %s", got.status, got.text)
	}
	if got := here.post(other, bodyOf(entry("other project")), "Idempotency-Key", "k-1"); got.status != 200 {
		t.Errorf("other project: %d %s", got.status, got.text)
	}
	here.post(key, bodyOf(entry("last")))
	testenv.Eventually(t, patience, func() error {
		page := here.get(key, "/v1/logs")
		count := strings.Count(string(page.text), `once`)
		if !strings.Contains(string(page.text), "last") || !strings.Contains(string(page.text), "other project") || count == 0 {
			return fmt.Errorf("not there yet: %s", page.text)
		}
		if count != 1 {
			t.Fatalf("found %d times: %s", count, page.text)
		}
		return nil
	})
}

// With the ledger silent, a process admits exactly the quota; a new process knows from the log what the old one took.
func TestQuotaSurvivesRestart(t *testing.T) {
	r := newRig(t)
	one := entry("12345678")
	r.account("org_a", func(a *contract.Account) { a.Quota = int64(5 * len(one)) })
	key := r.key("org_a", "prj_a", nil)
	for _, want := range [][]int{{200, 200, 200}, {200, 200, 429, 429}} {
		p := r.start(nil)
		for i, status := range want {
			if got := p.post(key, bodyOf(one)); got.status != status {
				t.Fatalf("request %d: %d %s, want %d", i, got.status, got.text, status)
			}
		}
		p.stop()
	}
}

// Without a broker nothing is accepted: 500, and the client may send again.
func TestPostWithoutBroker(t *testing.T) {
	broker, err := kafka.Start(kafka.Config{Dir: t.TempDir(), Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	stopBroker := sync.OnceFunc(func() { _ = broker.Close() })
	t.Cleanup(stopBroker)
	r := newRigOn(t, []string{broker.Addr()})
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	p := r.start(func(c *app.Config) { c.PublishTimeout = 500 * time.Millisecond })
	if got := p.post(key, bodyOf(entry("before"))); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	stopBroker()
	if got := p.post(key, bodyOf(entry("while it is down"))); got.status != 500 || got.code() != "unavailable" {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// Without a database entries are taken in as well: the log holds them until it can be written. Searching says 500.
func TestPostWithoutDatabase(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	p := r.start(func(c *app.Config) { c.DatabaseURL = "postgres://nobody@127.0.0.1:1/nothing" })
	if got := p.post(key, bodyOf(entry("m"))); got.status != 200 {
		t.Errorf("%d %s", got.status, got.text)
	}
	if got := p.get(key, "/v1/logs"); got.status != 500 || got.code() != "unavailable" {
		t.Errorf("%d %s", got.status, got.text)
	}
}
