package conformance

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
)

var (
	entries = flag.Int("entries", 10_000, "how many each client logs at each fault")
	subject = flag.String("subject", "", "another client's program, with its arguments, instead of ours")
)

const key = "weir_0123456789abcdef0123456789abcdef0123456789abcdef"

// subjects are our clients.
var subjects = map[string][]string{
	"go":         {"../go/conformance/subject"}, // built first
	"javascript": {"node", "../javascript/subject.js"},
	"python":     {"python3", "../python/subject.py"},
}

// A server accepts entries as Weir does, each idempotency key once, after
// it has done the harm of its fault.
type server struct {
	t     *testing.T
	fault func(n int, accept func(), w http.ResponseWriter) (answered bool)
	odd   string // bodies with it are refused; "": none

	mu       sync.Mutex
	requests int
	accepted map[string]int // how often, by message
	keys     map[string]bool
	parser   *ingest.Parser
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	packed, err := gzip.NewReader(r.Body)
	if err != nil {
		s.t.Errorf("the body is not compressed: %v", err)
		return
	}
	body, err := io.ReadAll(packed)
	if err != nil || r.URL.Path != "/v1/logs" || r.Header.Get("X-Api-Key") != key || r.Header.Get("Idempotency-Key") == "" {
		s.t.Errorf("%s with %v: %v", r.URL.Path, r.Header, err)
	}
	s.mu.Lock()
	s.requests++
	n := s.requests
	s.mu.Unlock()
	if before, _, found := bytes.Cut(body, []byte(s.odd)); s.odd != "" && found {
		index := bytes.Count(before, []byte(`"timestamp":`)) - 1
		answer(w, http.StatusBadRequest, fmt.Sprintf(`{"code":"invalid_json","detail":"It nests too deep.","errors":[{"index":%d}]}`, index))
		return
	}
	if !s.fault(n, func() { s.accept(r.Header.Get("Idempotency-Key"), body) }, w) {
		s.accept(r.Header.Get("Idempotency-Key"), body)
		answer(w, http.StatusOK, `{"processed":1,"rejected":0}`)
	}
}

func (s *server) accept(idempotency string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[idempotency] {
		return
	}
	s.keys[idempotency] = true
	batch, err := s.parser.ParseKeyed(body)
	if err != nil || batch.Rejected > 0 {
		s.t.Errorf("a batch is not valid: %v, %v", err, batch.Faults)
		return
	}
	for line := range bytes.Lines(batch.Lines) {
		entry, err := ingest.ReadBack(bytes.TrimSpace(line))
		if err != nil {
			s.t.Error(err)
		}
		message := string(entry.Message)
		if number, isOurs := strings.CutPrefix(message, "entry "); isOurs {
			n, _ := strconv.Atoi(number)
			if entry.HasError != (n%10 == 0) {
				s.t.Errorf("%s has an error: %t", message, entry.HasError)
			}
		}
		s.accepted[message]++
	}
}

func answer(w http.ResponseWriter, status int, body string, headers ...string) {
	for i := 0; i < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// clockOff refuses by a rate whose times are those of another clock.
func clockOff(by time.Duration) func(int, func(), http.ResponseWriter) bool {
	return func(n int, _ func(), w http.ResponseWriter) bool {
		now := time.Now().Add(by)
		if n%2 == 0 {
			answer(w, http.StatusTooManyRequests, `{"code":"rate_limited"}`, "Date", now.UTC().Format(http.TimeFormat), "Retry-After", "1",
				"X-RateLimit-Limit", "60000", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(now.Add(time.Minute).Unix(), 10))
		}
		return n%2 == 0
	}
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) bool {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = connection.Close()
	}
	return true
}

// faults are what goes wrong, and whether entries may be dropped for it.
var faults = map[string]struct {
	does  func(n int, accept func(), w http.ResponseWriter) bool
	drops string // the reason; "": none may be
	odd   string // of the one entry that makes a body invalid; only this may be dropped
}{
	"none": {does: func(int, func(), http.ResponseWriter) bool { return false }},
	"slow": {does: func(int, func(), http.ResponseWriter) bool { time.Sleep(200 * time.Millisecond); return false }},
	"429": {does: func(n int, _ func(), w http.ResponseWriter) bool {
		if n%3 == 0 {
			answer(w, http.StatusTooManyRequests, `{"code":"rate_limited"}`, "Retry-After", "1")
		}
		return n%3 == 0
	}},
	"500": {does: func(n int, _ func(), w http.ResponseWriter) bool {
		if n%2 == 0 {
			answer(w, http.StatusInternalServerError, `{"code":"unavailable"}`)
		}
		return n%2 == 0
	}},
	"cut": {does: func(n int, _ func(), w http.ResponseWriter) bool { return n%2 == 0 && cut(w) }},
	"lost answer": {does: func(n int, accept func(), w http.ResponseWriter) bool {
		if n%2 == 0 {
			accept()
		}
		return n%2 == 0 && cut(w)
	}},
	"answer cut off": {does: func(n int, accept func(), w http.ResponseWriter) bool {
		if n%2 == 0 {
			accept()
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"processed":1,`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		return false
	}},
	"clock ahead":  {does: clockOff(2 * 365 * 24 * time.Hour)},
	"clock behind": {does: clockOff(-2 * 365 * 24 * time.Hour)},
	"revoked key": {drops: "api_key_revoked", does: func(n int, _ func(), w http.ResponseWriter) bool {
		if n > 3 {
			answer(w, http.StatusUnauthorized, `{"code":"api_key_revoked","detail":"The API key was revoked."}`)
		}
		return n > 3
	}},
	"quota": {drops: "quota_exceeded", does: func(n int, _ func(), w http.ResponseWriter) bool {
		if n > 3 {
			answer(w, http.StatusTooManyRequests, `{"code":"quota_exceeded"}`, "Retry-After", "1")
		}
		return n > 3
	}},
	"odd entry":         {does: func(int, func(), http.ResponseWriter) bool { return false }, drops: "invalid_json", odd: `"entry 17"`},
	"wrong certificate": {drops: "no_answer"},
}

func TestClients(t *testing.T) {
	of := programs(t)
	for _, client := range slices.Sorted(maps.Keys(of)) {
		for _, fault := range slices.Sorted(maps.Keys(faults)) {
			t.Run(client+"/"+fault, func(t *testing.T) { try(t, of[client], fault) })
		}
	}
}

// programs are the clients' programs, with their arguments.
func programs(t testing.TB) map[string][]string {
	if *subject != "" {
		return map[string][]string{"given": strings.Fields(*subject)}
	}
	of, program := maps.Clone(subjects), filepath.Join(t.TempDir(), "subject")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, of["go"][0]).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	of["go"] = []string{program}
	return of
}

// BenchmarkDelivery measures how many entries a process of each client has delivered a
// second, from its start to its end. The server, which only unpacks, shares the machine.
func BenchmarkDelivery(b *testing.B) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if packed, err := gzip.NewReader(r.Body); err == nil {
			_, _ = io.Copy(io.Discard, packed)
		}
		answer(w, http.StatusOK, `{"processed":1,"rejected":0}`)
	}))
	defer server.Close()
	authority := fileOf(b, server.Certificate().Raw)
	for client, command := range programs(b) {
		b.Run(client, func(b *testing.B) {
			for b.Loop() {
				if got := run(b, command, server.URL, authority, ""); got.Accepted != *entries {
					b.Fatalf("%+v", got)
				}
			}
			b.ReportMetric(float64(*entries*b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// printed is what a subject prints.
type printed struct {
	Accepted int            `json:"accepted"`
	Dropped  map[string]int `json:"dropped"`
	P50      float64        `json:"p50_us"`
	P99      float64        `json:"p99_us"`
}

// try lets a client log to a server with a fault: each entry is accepted
// once, or the client says that it was dropped.
func try(t *testing.T, command []string, fault string) {
	t.Parallel()
	harm := faults[fault]
	s := &server{t: t, fault: harm.does, odd: harm.odd, accepted: map[string]int{}, keys: map[string]bool{}, parser: ingest.NewParser(ingest.DefaultLimits())}
	listening := httptest.NewTLSServer(s)
	defer listening.Close()
	authority := listening.Certificate().Raw
	if harm.does == nil {
		authority = otherAuthority(t)
	}
	got := run(t, command, listening.URL, fileOf(t, authority), harm.drops)
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := 0
	for message, times := range s.accepted {
		if strings.HasPrefix(message, "entry ") {
			kept++
		}
		if times > 1 {
			t.Errorf("%q was accepted %d times", message, times)
		}
	}
	dropped := 0
	for _, n := range got.Dropped {
		dropped += n
	}
	if s.accepted["after close"] > 0 || kept+dropped != *entries || got.Accepted != kept {
		t.Errorf("of %d entries %d were accepted; the client says %+v", *entries, kept, got)
	}
	if harm.odd != "" && dropped > 1 {
		t.Errorf("%d entries were dropped for one", dropped)
	}
	if harm.odd != "" && got.Dropped["rejected"] == dropped { // as the Go client calls it
		harm.drops = "rejected"
	}
	if (dropped > 0) != (harm.drops != "") || dropped != got.Dropped[harm.drops] {
		t.Errorf("dropped: %v, want by %q alone", got.Dropped, harm.drops)
	}
	t.Logf("%d requests; a call takes %.0f µs, and 99 %% at most %.0f", s.requests, got.P50, got.P99)
}

// fileOf writes a certificate into a file.
func fileOf(t testing.TB, certificate []byte) string {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// otherAuthority makes the certificate of an authority that signed none.
func otherAuthority(t *testing.T) []byte {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, of, of, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func run(t testing.TB, command []string, url, authority, drops string) (got printed) {
	deadline := "60"
	if drops != "" {
		deadline = "2"
	}
	subject := exec.CommandContext(t.Context(), command[0], slices.Concat(command[1:], []string{strconv.Itoa(*entries), deadline})...)
	subject.Env = append(os.Environ(), "WEIR_BASE_URL="+url+"/v1", "WEIR_API_KEY="+key, "WEIR_CA_FILE="+authority, "PYTHONPATH=../python")
	var problems bytes.Buffer
	subject.Stderr = &problems
	text, err := subject.Output()
	if err != nil || json.Unmarshal(text, &got) != nil {
		t.Fatalf("%v: %s\n%s", err, text, &problems)
	}
	if strings.Contains(problems.String(), key) {
		t.Error("the client prints its key")
	}
	return got
}

// The clients do what needs no server.
func TestAlone(t *testing.T) {
	for client, command := range map[string][]string{"python": {"python3", "-W", "ignore", "test_weir.py"}, "javascript": {"node", "--test"}} {
		t.Run(client, func(t *testing.T) {
			test := exec.CommandContext(t.Context(), command[0], command[1:]...)
			test.Dir = "../" + client
			if out, err := test.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
