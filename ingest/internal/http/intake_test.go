package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/testenv"
)

var (
	secret = "weir_" + strings.Repeat("ab", 24)
	start  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// A memoryLog records what is published and answers as configured.
type memoryLog struct {
	mu       sync.Mutex
	accepted []ingest.Acceptance // without their lines
	lines    int
	hold     chan struct{} // if not nil, publishing waits for it
	err      error
}

func (m *memoryLog) Publish(_ context.Context, accepted ingest.Acceptance) (ingest.Outcome, error) {
	if m.hold != nil {
		<-m.hold
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return ingest.Outcome{}, m.err
	}
	for _, part := range accepted.Parts {
		m.lines += bytes.Count(part.Lines, []byte{'\n'})
	}
	m.accepted = append(m.accepted, accepted)
	return ingest.Outcome{Status: ingest.Published, Offset: int64(len(m.accepted))}, nil
}

func newIntake(tb testing.TB, log intake.Publisher, account ingest.Account) *Intake {
	tb.Helper()
	clock := func() time.Time { return start }
	credentials := identity.NewCredentials(clock)
	value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1", Project: "prj_1", Environment: "prod", State: contract.CredentialActive})
	if err != nil || credentials.Apply(contract.CredentialKey(secret), value) != nil {
		tb.Fatal(err)
	}
	gate := admission.NewGate(clock)
	account.Period, account.AnchorDay = calendar.PeriodAt(start, 1), 1
	gate.Apply("org_1", 1_000_000_000, account)
	batches := atomic.Int64{}
	return &Intake{
		Service: &intake.Service{
			Credentials: credentials, Gate: gate, Clients: admission.NewClients(10), Replays: admission.NewReplays(time.Hour, 1000), Publisher: log,
			Timeout: time.Second, Clock: clock, Meter: keyfact.NewMeter(clock),
			NewBatch: func() string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", batches.Add(1)) },
		},
		Bodies: testBodies(189<<20, 128<<20, clock), AnonymousBodies: testBodies(27<<20, 1<<20, clock), Limits: ingest.DefaultLimits(),
		Refusals: httpapi.NewRefusals(), Ready: func() error { return nil },
	}
}

// testBodies returns bodies with so much memory, the largest of max bytes.
func testBodies(memory int64, max int, clock func() time.Time) *Bodies {
	return NewBodies(BodyLimits{Bytes: memory, Max: max, Requests: 256, LargeBodies: 8}, clock)
}

var plenty = ingest.Account{Limit: 1 << 50, NextLimit: 1 << 50}

func newPost(body io.Reader, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/logs", body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", secret)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func serve(in *Intake, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	httpapi.Handle(in.Post)(w, r)
	return w
}

// An untouchable fails the test when it is read.
type untouchable struct{ t *testing.T }

func (u untouchable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// A refusal by header, key, rate or quota does not read the body.
func TestRefusalsDoNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		account ingest.Account
		headers []string
		rate    int
		status  int
	}{
		"header":     {plenty, []string{"Content-Type", "text/plain"}, 100, 400},
		"key":        {plenty, []string{"X-Api-Key", "weir_wrong"}, 100, 401},
		"rate":       {plenty, nil, 1, 429},
		"quota":      {ingest.Account{Limit: 10, Used: 10}, nil, 100, 429},
		"suspension": {ingest.Account{Limit: 10, Suspended: true}, nil, 100, 429},
		"size":       {plenty, []string{"Content-Length", "too much"}, 100, 400},
	} {
		t.Run(name, func(t *testing.T) {
			in := newIntake(t, &memoryLog{}, c.account)
			c.account.Period, c.account.AnchorDay, c.account.Version = calendar.PeriodAt(start, 1), 1, 1
			in.Service.Gate.Apply("org_1", c.rate, c.account)
			if c.rate == 1 {
				in.Service.Gate.Enter(identity.Principal{Organization: "org_1", Project: "prj_1", ID: "key_1"})
			}
			r := newPost(untouchable{t}, c.headers...)
			r.ContentLength = 100
			if name == "size" {
				r.ContentLength = 129 << 20
			}
			if w := serve(in, r); w.Code != c.status {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

// The first request of a new organization waits for its account, which
// is a moment behind its key, but not for long, and not with its body in memory.
func TestPostAwaitsTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, &memoryLog{}, plenty)
		in.Service.Gate.Forget("org_1")
		begun := time.Now()
		if w := serve(in, newPost(bytes.NewReader(body(1)))); w.Code != 500 || w.Header().Get("Retry-After") == "" || time.Since(begun) != time.Second {
			t.Errorf("without an account: %d %s after %s", w.Code, w.Body, time.Since(begun))
		}
		keyInBody := newPost(strings.NewReader(`{"api_key":"` + secret + `","logs":[` + sampleEntry(0) + `]}`))
		keyInBody.Header.Del("X-Api-Key")
		begun = time.Now()
		if w := serve(in, keyInBody); w.Code != 500 || time.Since(begun) != 0 {
			t.Errorf("with its key in the body: %d %s after %s", w.Code, w.Body, time.Since(begun))
		}
		time.AfterFunc(300*time.Millisecond, func() {
			in.Service.Gate.Apply("org_1", 60, ingest.Account{Limit: 1 << 20, NextLimit: 1 << 20, Period: calendar.PeriodAt(start, 1), AnchorDay: 1})
		})
		if w := serve(in, newPost(bytes.NewReader(body(1)))); w.Code != 200 || w.Header().Get("X-RateLimit-Limit") != "60" {
			t.Errorf("once it has come: %d %s", w.Code, w.Body)
		}
	})
}

// The event has the sender, the trace and the hash of the idempotency
// key; a malformed trace is left out.
func TestPostDescribesTheRequest(t *testing.T) {
	log := &memoryLog{}
	in := newIntake(t, log, plenty)
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	serve(in, newPost(bytes.NewReader(body(1)), "Traceparent", trace, "Idempotency-Key", "k"))
	serve(in, newPost(bytes.NewReader(body(1)), "Traceparent", "00-x"))
	first, second := log.accepted[0], log.accepted[1]
	if first.Organization != "org_1" || first.Project != "prj_1" || first.Environment != "prod" || first.Key != "key_1" || !first.At.Equal(start) || first.Traceparent != trace {
		t.Errorf("got %+v", first)
	}
	if len(first.Idempotency) != 64 || len(first.Digest) != 64 || second.Idempotency != "" || second.Digest != "" || second.Traceparent != "" {
		t.Errorf("got %q %q, then %q %q %q", first.Idempotency, first.Digest, second.Idempotency, second.Digest, second.Traceparent)
	}
}

// Two concurrent requests with one idempotency key apply once; after a
// failure the next one counts.
func TestIdempotencyAtTheSameTime(t *testing.T) {
	log := &memoryLog{hold: make(chan struct{})}
	in := newIntake(t, log, plenty)
	answers := make(chan *httptest.ResponseRecorder, 5)
	for range cap(answers) {
		go func() { answers <- serve(in, newPost(bytes.NewReader(body(3)), "Idempotency-Key", "k")) }()
	}
	log.hold <- struct{}{} // the first one is at the log; whatever comes later finds its attempt
	close(log.hold)
	replayed, batches := 0, map[string]bool{}
	for range cap(answers) {
		w := <-answers
		if w.Code != 200 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		if w.Header().Get("Idempotency-Replayed") == "true" {
			replayed++
		}
		batches[w.Header().Get("Weir-Batch-Id")] = true
	}
	if replayed != cap(answers)-1 || len(log.accepted) != 1 {
		t.Errorf("%d replayed, %d published", replayed, len(log.accepted))
	}
	if len(batches) != 1 || !batches[log.accepted[0].Batch] {
		t.Errorf("the answers name the batches %v, want %q alone", batches, log.accepted[0].Batch)
	}

	failing := &memoryLog{err: errors.New("no broker")}
	in = newIntake(t, failing, plenty)
	if w := serve(in, newPost(bytes.NewReader(body(1)), "Idempotency-Key", "k")); w.Code != 500 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "no broker") {
		t.Errorf("without a broker: %d %s", w.Code, w.Body)
	}
	failing.err = nil
	if w := serve(in, newPost(bytes.NewReader(body(1)), "Idempotency-Key", "k")); w.Code != 200 || w.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("after it: %d %s", w.Code, w.Body)
	}
}

// A request with an Idempotency-Key over the quota is refused but
// exhausts nothing, as it may repeat a charged one. Without a key it
// exhausts the quota.
func TestQuotaRefusesARepetitionAlone(t *testing.T) {
	in := newIntake(t, &memoryLog{}, ingest.Account{Limit: 1500})
	for i, c := range []struct {
		entries int
		headers []string
		status  int
	}{
		{10, []string{"Idempotency-Key", "k"}, 429},
		{1, nil, 200},
		{10, []string{"Idempotency-Key", "k"}, 429},
		{1, []string{"Idempotency-Key", "l"}, 200},
		{10, nil, 429},
		{1, nil, 429},
	} {
		if w := serve(in, newPost(bytes.NewReader(body(c.entries)), c.headers...)); w.Code != c.status {
			t.Errorf("request %d: %d %s, want %d", i, w.Code, w.Body, c.status)
		}
	}
}

// Over its organization's memory a request waits for earlier ones and
// is refused after too long; all memory is returned.
func TestOverloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		in := newIntake(t, log, plenty)
		in.Bodies = testBodies(64<<10*4*reserveShare*holderShare, 1<<20, time.Now)
		answers := make(chan int, 8)
		for range cap(answers) {
			go func() { answers <- serve(in, newPost(bytes.NewReader(body(100)))).Code }()
		}
		synctest.Wait()
		if use := in.Bodies.Use(); use.UnderWay != 8 || use.Waiting != 4 || use.SmallBytes != 4*64<<10 {
			t.Fatalf("%+v", use)
		}
		for range 4 {
			if code := <-answers; code != 429 {
				t.Fatalf("got %d", code)
			}
		}
		close(log.hold)
		for range 4 {
			if code := <-answers; code != 200 {
				t.Fatalf("got %d", code)
			}
		}
		if use := in.Bodies.Use(); use != (BodyUse{Full: 4}) {
			t.Errorf("%+v", use)
		}
	})
}

// Bodies of 192 MB in all, eight at a time, grow the process by a few
// times the lent memory at most.
func TestMemoryStaysFlat(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // tests collect garbage less often
	in := newIntake(t, &memoryLog{}, plenty)
	in.Bodies = testBodies(48<<20, 8<<20, in.Service.Clock)
	large := []byte(`{"logs":[` + sampleEntry(0) + `],"x":"` + strings.Repeat("y", 6<<20) + `"}`)
	var wait sync.WaitGroup
	var peak, good atomic.Uint64
	for range 8 {
		wait.Go(func() {
			for range 4 {
				for serve(in, newPost(struct{ io.Reader }{bytes.NewReader(large)})).Code != 200 {
					time.Sleep(time.Millisecond) // as a client does on Retry-After
				}
				good.Add(1)
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				peak.Store(max(peak.Load(), memory.HeapInuse))
			}
		})
	}
	wait.Wait()
	if limit := uint64(48 << 20); peak.Load() > limit || good.Load() != 32 {
		t.Errorf("the heap grew to %d MB, %d accepted", peak.Load()>>20, good.Load())
	}
}

// Without a key in the header only smaller bodies are read, with memory
// of their own.
func TestAnonymousBodiesGetLess(t *testing.T) {
	in := newIntake(t, &memoryLog{}, plenty)
	post := func(padding int) *httptest.ResponseRecorder {
		r := newPost(strings.NewReader(`{"api_key":"` + secret + `","logs":[` + sampleEntry(0) + `],"x":"` + strings.Repeat("y", padding) + `"}`))
		r.Header.Del("X-Api-Key")
		return serve(in, r)
	}
	if w := post(900 << 10); w.Code != 200 {
		t.Errorf("a body that fits: %d %s", w.Code, w.Body)
	}
	if w := post(1 << 20); w.Code != 400 || !strings.Contains(w.Body.String(), "body_too_large") {
		t.Errorf("a larger one: %d %s", w.Code, w.Body)
	}
	in.AnonymousBodies = testBodies(0, 1<<20, in.Service.Clock)
	if w := post(1); w.Code != 429 {
		t.Errorf("without memory: %d %s", w.Code, w.Body)
	}
	if w := serve(in, newPost(bytes.NewReader(body(1)))); w.Code != 200 {
		t.Errorf("with a key: %d %s", w.Code, w.Body)
	}
}

// Members of a body are unordered: with the key in it the refusal is
// the same wherever the key stands.
func TestKeyInBodyStandsAnywhere(t *testing.T) {
	in := newIntake(t, &memoryLog{}, plenty)
	for _, c := range []struct{ logs, code string }{
		{`[]`, "empty_batch"},
		{`null`, "missing_field"},
		{`"x"`, "invalid_type"},
		{`[` + strings.Repeat("{},", 1000) + `{}]`, "batch_too_large"},
		{`[{}]`, "invalid_entries"},
	} {
		for key, want := range map[string]struct {
			status int
			code   string
		}{secret: {400, c.code}, "weir_" + strings.Repeat("cd", 24): {401, "invalid_api_key"}} {
			for _, body := range []string{`{"api_key":"` + key + `","logs":` + c.logs + `}`, `{"logs":` + c.logs + `,"api_key":"` + key + `"}`} {
				r := newPost(strings.NewReader(body))
				r.Header.Del("X-Api-Key")
				in.Service.Clients = admission.NewClients(10)
				if w := serve(in, r); w.Code != want.status || !strings.Contains(w.Body.String(), `"`+want.code+`"`) {
					t.Errorf("%.60s: %d %s, want %d %s", body, w.Code, w.Body, want.status, want.code)
				}
			}
		}
	}
}

// The answer to a key in the body links the document that all listeners
// serve: a gateway has no other path of it.
func TestDeprecationLeadsToTheDocument(t *testing.T) {
	r := newPost(strings.NewReader(`{"api_key":"` + secret + `","logs":[` + sampleEntry(0) + `]}`))
	r.Header.Del("X-Api-Key")
	link := serve(newIntake(t, &memoryLog{}, plenty), r).Header().Get("Link")
	if want := `</v1/openapi.json>; rel="deprecation"; type="application/json"`; link != want {
		t.Errorf("Link is %q, want %q", link, want)
	}
}

func sampleEntry(index int) string {
	random := rand.New(rand.NewPCG(uint64(index), 2))
	return fmt.Sprintf(`{"timestamp":"2026-03-14T09:26:%02d.%03dZ","level":"info","environment":"production",`+
		`"message":"request %d to /v1/orders/%d finished with status %d after retrying the upstream %d times in eu-central-1",`+
		`"metadata":{"request_id":"%016x%016x","user_id":%d,"duration_ms":%.3f,"region":"eu-central-1","cached":%t,"status":%d,"route":"/v1/orders/{id}/lines/{line}","tags":["checkout","retry"],"pod":"orders-7d9c8b5f4-x2x7k"}}`,
		random.IntN(60), random.IntN(1000), index, random.IntN(1e6), 200+random.IntN(300), random.IntN(4),
		random.Uint64(), random.Uint64(), random.IntN(1e7), random.Float64()*1000, random.IntN(2) == 0, 200+random.IntN(300))
}

// body is a body of n entries of about 480 bytes.
func body(n int) []byte {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = sampleEntry(i)
	}
	return []byte(`{"logs":[` + strings.Join(entries, ",") + `]}`)
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkPost measures a request of 100 entries from headers to
// answer, without network and broker.
func BenchmarkPost(b *testing.B) {
	for _, c := range []struct{ name, project, rules string }{
		{"no rules", "", ""},
		{"rules of another project", "prj_9", "redact email"},
		{"three conditions", "prj_1", "drop level:debug\ndrop path:/health*\nset level error if \"disk full\""},
		{"redactions", "prj_1", "redact email, ip, card-number, token, access-key, password"},
	} {
		b.Run(c.name, func(b *testing.B) {
			in := newIntake(b, nothing{}, plenty)
			if c.project != "" {
				in.Service.Rules = rules.NewBook(nil, in.Service.Clock)
				testenv.Must(b, in.Service.Rules.Set(c.project, 1, c.rules))
			}
			benchmarkPost(b, in)
		})
	}
}

func benchmarkPost(b *testing.B, in *Intake) {
	in.Service.Outcomes = outcomes.NewMeter(outcomes.Config{Process: "run_1", Interval: time.Hour, Clock: in.Service.Clock, To: &outcomesLog{}})
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: in.Service.Clock})
	router.Post("/v1/logs", httpapi.Handle(in.Post))
	text := body(100)
	reader := bytes.NewReader(text)
	r := newPost(nil)
	r.ContentLength = int64(len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(text)
		r.Body = io.NopCloser(reader)
		router.ServeHTTP(&discard{http.Header{}}, r)
	}
}

type nothing struct{}

func (nothing) Publish(context.Context, ingest.Acceptance) (ingest.Outcome, error) {
	return ingest.Outcome{Status: ingest.Published}, nil
}

// Only a preference of its own sets the handling, not text inside
// another's quoted value.
func TestPrefer(t *testing.T) {
	for _, c := range []struct {
		values  []string
		strict  bool
		applied string
	}{
		{nil, false, ""},
		{[]string{"handling=strict"}, true, "handling=strict"},
		{[]string{`respond-async, Handling = "Strict"; x=y`}, true, "handling=strict"},
		{[]string{`handling="str\ict"`}, true, "handling=strict"},
		{[]string{"wait=10", "handling=strict"}, true, "handling=strict"},
		{[]string{"handling=lenient, handling=strict"}, false, "handling=lenient"},
		{[]string{"handling=other"}, false, ""},
		{[]string{`foo="a, handling=strict"`}, false, ""},
		{[]string{`foo="a\", handling=strict"`}, false, ""},
		{[]string{`foo="a\\", handling=strict`}, true, "handling=strict"},
		{[]string{`foo; x="a, handling=strict"`}, false, ""},
		{[]string{`foo="`, "handling=strict"}, true, "handling=strict"},
	} {
		asked, err := readHeaders(http.Header{"Content-Type": {"application/json"}, "Prefer": c.values}, requestOptions{})
		if err != nil || asked.strict != c.strict || asked.preferred != c.applied {
			t.Errorf("%q: strict %t, applied %q, %v", c.values, asked.strict, asked.preferred, err)
		}
	}
}

// Two different keys or content types are refused, whichever comes
// first, and no key is shown; the same one twice is as one.
func TestHeadersThatContradict(t *testing.T) {
	other := "weir_other"
	for name, c := range map[string]struct {
		header string
		values []string
		status int
	}{
		"two keys":                {"X-Api-Key", []string{secret, other}, 400},
		"the other key first":     {"X-Api-Key", []string{other, secret}, 400},
		"a key and an empty one":  {"X-Api-Key", []string{"", secret}, 400},
		"one key twice":           {"X-Api-Key", []string{secret, secret}, 200},
		"two content types":       {"Content-Type", []string{"application/json", "text/plain"}, 400},
		"one content type, twice": {"Content-Type", []string{"application/json", "application/json"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPost(bytes.NewReader(body(1)))
			r.Header[c.header] = c.values
			w := serve(newIntake(t, &memoryLog{}, plenty), r)
			if w.Code != c.status || c.status == 400 && !strings.Contains(w.Body.String(), `"invalid_request"`) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if text := w.Body.String(); strings.Contains(text, secret) || strings.Contains(text, other) {
				t.Errorf("a key is shown: %s", text)
			}
		})
	}
}

// A project or key with an exhausted budget gets 429 with its id, limit
// and use; the outcome names the budget. Others continue.
func TestBudgetRefuses(t *testing.T) {
	other := "weir_" + strings.Repeat("ef", 24)
	for _, c := range []struct {
		name, reason, member, id string
		budget                   ingest.Budget
	}{
		{"a project", contract.ReasonProjectBudget, "project", "prj_1", ingest.Budget{Spender: ingest.Spender{Project: "prj_1"}, Limit: 100, Used: 20}},
		{"a key", contract.ReasonKeyBudget, "key", "key_1", ingest.Budget{Spender: ingest.Spender{Key: "key_1"}, Limit: 100, Used: 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			account := plenty
			account.Budgets = []ingest.Budget{c.budget}
			in, to := newIntake(t, &memoryLog{}, account), &outcomesLog{}
			in.Service.Outcomes = outcomes.NewMeter(outcomes.Config{Process: "run_1", Interval: time.Hour, Clock: in.Service.Clock, To: to})
			value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_2", Organization: "org_1", Project: "prj_2", State: contract.CredentialActive})
			if err != nil || in.Service.Credentials.Apply(contract.CredentialKey(other), value) != nil {
				t.Fatal(err)
			}
			var codes []int
			var body map[string]any
			for range 3 { // 65 of 80 bytes; 15 are left; not read
				answer := serve(in, newPost(strings.NewReader(`{"logs":[`+goodEntry+`]}`)))
				codes = append(codes, answer.Code)
				if answer.Code == http.StatusTooManyRequests && body == nil {
					testenv.Must(t, json.Unmarshal(answer.Body.Bytes(), &body))
				}
			}
			if !slices.Equal(codes, []int{200, 429, 429}) {
				t.Fatalf("answered %v", codes)
			}
			if answer := serve(in, newPost(strings.NewReader(`{"logs":[`+goodEntry+`]}`), "X-Api-Key", other)); answer.Code != http.StatusOK {
				t.Errorf("another project: %d %s", answer.Code, answer.Body)
			}
			budget, _ := body["budget"].(map[string]any)
			if body["code"] != codeQuotaExceeded || budget[c.member] != c.id || budget["limit"] != 100.0 || budget["used"] != 85.0 || budget["remaining"] != 15.0 ||
				budget["resets_at"] != "2026-12-01T00:00:00Z" || !strings.Contains(fmt.Sprint(body["detail"]), c.id) {
				t.Errorf("answered %v", body)
			}
			if err := in.Service.Outcomes.Finish(); err != nil || len(to.refused) == 0 {
				t.Fatalf("%v, published %+v", err, to.refused)
			}
			want := outcomes.Refusal{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Environment: "prod", RequestID: to.refused[0].RequestID, At: start,
				Bytes: 65, Remaining: 15, PeriodStart: calendar.PeriodAt(start, 1).Start, Quota: 100, Exhausts: true, Requests: 1, Reason: c.reason}
			if to.refused[0] != want {
				t.Errorf("published %+v, want %+v", to.refused[0], want)
			}
			if !slices.ContainsFunc(to.counts, func(n outcomes.Count) bool {
				return n.Outcome == contract.OutcomeQuotaExceeded && n.Reason == c.reason && n.Requests == 2
			}) {
				t.Errorf("counted %+v", to.counts)
			}
		})
	}
}

// Every request with a known key is counted once by its outcome; others are not.
func TestUsesAreCounted(t *testing.T) {
	log := &memoryLog{}
	in := newIntake(t, log, plenty)
	ended := "weir_" + strings.Repeat("cd", 24)
	value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_2", Organization: "org_1", Project: "prj_1", State: contract.CredentialRevoked})
	if err != nil || in.Service.Credentials.Apply(contract.CredentialKey(ended), value) != nil {
		t.Fatal(err)
	}
	post := func(body, key string, want int) {
		t.Helper()
		r := newPost(bytes.NewReader([]byte(body)), "User-Agent", "checkout/1")
		r.RemoteAddr = "192.0.2.7:1234"
		r.Header.Set("X-Api-Key", key)
		if key == "" {
			r.Header.Del("X-Api-Key")
		}
		if got := serve(in, r); got.Code != want {
			t.Fatalf("%s with %q: %d %s", body, key, got.Code, got.Body)
		}
	}
	good := `{"logs":[{"timestamp":"2026-11-20T10:00:00Z","level":"info","message":"m"}]}`
	post(good, secret, http.StatusOK)
	post(strings.Replace(good, "{", `{"api_key":"`+secret+`",`, 1), "", http.StatusOK)
	post(`{}`, secret, http.StatusBadRequest)
	post(good, ended, http.StatusUnauthorized)
	post(good, "weir_"+strings.Repeat("ef", 24), http.StatusUnauthorized)
	post(`{}`, "", http.StatusUnauthorized)
	log.err = errors.New("no broker")
	post(good, secret, http.StatusInternalServerError)
	var mu sync.Mutex // uses of several keys are published at once
	published := map[string]contract.KeyUsed{}
	in.Service.Meter.Flush(t.Context(), func(_ context.Context, used contract.KeyUsed) error {
		mu.Lock()
		defer mu.Unlock()
		published[used.APIKey] = used
		return nil
	})
	used := contract.KeyUsed{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Accepted: 2, Rejected: 2, LastUsedAt: start,
		Address: "192.0.2.7", Client: "checkout/1"}
	refused := used
	refused.APIKey, refused.Accepted, refused.Rejected, refused.Refused = "key_2", 0, 0, 1
	got := published["key_1"]
	if got.FirstAcceptedAt == nil || !got.FirstAcceptedAt.Equal(start.In(time.UTC)) {
		t.Errorf("first accepted at %v", got.FirstAcceptedAt)
	}
	if got.FirstAcceptedAt = nil; got != used || published["key_2"] != refused || len(published) != 2 {
		t.Errorf("published %+v", published)
	}
}
