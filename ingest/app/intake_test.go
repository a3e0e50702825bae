package app_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/telemetry"
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

// Every status and code of the interface, over HTTPS, with a real broker.
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
	p := r.start(func(c *app.Config) { c.Bodies.MaxBodyBytes = 1 << 20 })

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
		{"the one request of a minute", slow, fine, nil, 200, ""},
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

// admits waits until requests with these keys, which have no
// entries, are refused for nothing else.
func (p *replica) admits(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		testenv.Eventually(p.t, func() error {
			if got := p.post(key, []byte("{}")); got.code() != "missing_field" {
				return fmt.Errorf("%d %s", got.status, got.text)
			}
			return nil
		})
	}
}

// What is accepted, answered and found, in one installation.
func TestIntake(t *testing.T) {
	r := newRig(t)
	p := r.start(nil)
	for name, test := range map[string]func(*testing.T, *rig, *replica){
		"PostAnswers": testPostAnswers, "PostFollowsState": testPostFollowsState, "ReadBack": testReadBack,
		"ReadBackLargeRequest": testReadBackLargeRequest, "KeysThatReadLess": testKeysThatReadLess,
		"Tail": testTail, "TailsEnd": testTailsEnd, "OpenTelemetry": testOpenTelemetry, "SDK": testSDK,
	} {
		t.Run(name, func(t *testing.T) {
			own := *p
			own.t = t
			test(t, r, &own)
		})
	}
}

// Answers to a good, a mixed and a strict request have the exact counts
// accepted, charged and refused.
func testPostAnswers(t *testing.T, r *rig, p *replica) {
	account := r.account("org_answers", func(a *contract.Account) { a.Quota, a.Used = 1000, 100 })
	key := r.key("org_answers", "prj_answers", nil)
	p.admits(key)

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

// A changed credential or account soon applies.
func testPostFollowsState(t *testing.T, r *rig, p *replica) {
	r.account("org_state", nil)
	key := r.key("org_state", "prj_state", nil)
	within := func(what string, status int, code string) {
		t.Helper()
		testenv.Eventually(t, func() error {
			if got := p.post(key, bodyOf(entry("m"))); got.status != status || code != "" && got.code() != code {
				return fmt.Errorf("%s: %d %s", what, got.status, got.text)
			}
			return nil
		})
	}
	within("issued", 200, "")
	r.account("org_state", func(a *contract.Account) { a.State = contract.AccountSuspended })
	within("suspended", 429, "quota_exceeded")
	r.account("org_state", nil)
	within("restored", 200, "")
	r.PublishEvent(contract.TopicCredentials, contract.TypeCredentialChanged, contract.CredentialKey(key), contract.Credential{
		Kind: contract.CredentialAPIKey, ID: "k", Organization: "org_state", Project: "prj_state", State: contract.CredentialRevoked, Version: 2,
	})
	within("revoked", 401, "api_key_revoked")
}

// A repeated Idempotency-Key has the effect of one request, on the same
// replica and on another.
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
	testenv.Eventually(t, func() error {
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

// Without the ledger a process admits exactly the quota, and a new
// process reads the old one's charges from the log.
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

// Without a broker nothing is accepted: 500, and the client may retry.
func TestPostWithoutBroker(t *testing.T) {
	broker, err := kafka.Start(kafka.Config{Open: true, Dir: t.TempDir(), Logger: testenv.Logger(t)})
	testenv.Must(t, err)
	stopBroker := sync.OnceFunc(func() { _ = broker.Close() })
	t.Cleanup(stopBroker)
	r := newRigOn(t, []string{broker.Addr()})
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	p := r.start(func(c *app.Config) { c.Publish.PublishTimeout = 500 * time.Millisecond })
	if got := p.post(key, bodyOf(entry("before"))); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	stopBroker()
	if got := p.post(key, bodyOf(entry("while it is down"))); got.status != 500 || got.code() != "unavailable" {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// Without a database entries are accepted and stay in the log until
// they can be stored. Searches answer 500.
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

// emptyBlock is an empty deflate block: it continues a stream without content.
var emptyBlock = []byte{0, 0, 0, 0xff, 0xff}

// neverEnding sends a gzip body that inflates to size bytes of white
// space and continues with empty blocks forever.
func (p *replica) neverEnding(ctx context.Context, key string, size int) {
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/logs", reader)
	if err != nil {
		p.t.Error(err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Content-Encoding", "gzip")
	request.Header.Set("X-Api-Key", key)
	go func() {
		var packed bytes.Buffer
		inflates := gzip.NewWriter(&packed)
		_, _ = inflates.Write(bytes.Repeat([]byte(" "), size))
		_ = inflates.Flush()
		_, err := writer.Write(packed.Bytes())
		for err == nil && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond) // the pace of a client that is slow
			_, err = writer.Write(emptyBlock)
		}
		_ = writer.CloseWithError(context.Canceled)
	}()
	if response, err := p.client.Do(request); err == nil {
		_ = response.Body.Close()
	}
	_ = reader.Close()
}

// gauge adds up the metrics of a name.
func gauge(registry *telemetry.Registry, name string) (sum int) {
	recorder := httptest.NewRecorder()
	registry.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(recorder.Body.String()) {
		if value, found := strings.CutPrefix(line, name+"{"); found {
			number, _ := strconv.ParseFloat(strings.TrimSpace(value[strings.LastIndexByte(value, ' '):]), 64)
			sum += int(number)
		}
	}
	return sum
}

// Endless bodies of one organization block nobody else's requests, even
// while they hold as much memory as they can.
func TestNeverEndingBodiesStarveNobody(t *testing.T) {
	r := newRig(t)
	r.account("org_noisy", nil)
	r.account("org_quiet", nil)
	noisy, quiet := r.key("org_noisy", "prj_noisy", nil), r.key("org_quiet", "prj_quiet", nil)
	registry := telemetry.New()
	p := r.start(func(c *app.Config) {
		c.Bodies.MaxBodyBytes, c.Bodies.InFlightBytes, c.Telemetry.Registry = 8<<20, 32<<20, registry
	})
	ctx, stop := context.WithCancel(t.Context())
	var attacks sync.WaitGroup
	defer attacks.Wait()
	defer stop()
	sizes := []int{8 << 20, 8 << 20, 8 << 20} // and what fills the gaps between them
	for size := 4 << 20; size >= 64<<10; size /= 2 {
		sizes = append(sizes, size, size)
	}
	var ended atomic.Int64 // some are refused: their organization's memory is full
	for i, size := range sizes {
		attacks.Go(func() {
			p.neverEnding(ctx, noisy, size-1000)
			ended.Add(1)
		})
		testenv.Eventually(t, func() error {
			if n := gauge(registry, "weir_ingest_in_flight_bodies"); n+int(ended.Load()) <= i && n < 4 {
				return fmt.Errorf("%d of %d bodies are under way", n, i+1)
			}
			return nil
		})
	}
	bodies := map[string][]byte{
		"tiny":  bodyOf(entry("m")),
		"small": bodyOf(strings.Split(strings.Repeat(entry(strings.Repeat("x", 900))+"|", 200), "|")[:200]...),
	}
	bodies["packed"] = compressed(t, bodies["small"], gzipped)
	for i := range 120 {
		for name, body := range bodies {
			headers := []string{"Content-Encoding", map[bool]string{true: "gzip", false: "identity"}[name == "packed"]}
			if got := p.post(quiet, body, headers...); got.status != http.StatusOK {
				t.Fatalf("post %d, %s: %d %s", i, name, got.status, got.text)
			}
		}
		time.Sleep(10 * time.Millisecond) // the pace of a client that is quiet
	}
}
