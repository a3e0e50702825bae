package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// A body is one compressed stream: data after it, or a truncated
// stream, is refused in every encoding.
func TestEncodedBodyIsTheStreamAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		how  string
		open func(io.Writer) (io.WriteCloser, error)
	}{
		{"gzip", "gzip", func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }},
		{"zlib", "deflate", func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }},
		{"bare deflate", "deflate", func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 5) }},
		{"zstd", "zstd", func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stream bytes.Buffer
			w, err := c.open(&stream)
			testenv.Must(t, err)
			if _, err := w.Write(body(20)); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			in := newIntake(t, &memoryLog{}, plenty)
			whole := stream.String()
			for range 2 { // the second time with a reader that was used before
				for _, sent := range []string{whole + "x", whole + strings.Repeat("garbage ", 1000), whole[:len(whole)-1]} {
					got := serve(in, newPost(strings.NewReader(sent), "Content-Encoding", c.how))
					if got.Code != 400 || !strings.Contains(got.Body.String(), `"invalid_encoding"`) {
						t.Errorf("%d bytes for %d: %d %s", len(sent), len(whole), got.Code, got.Body)
					}
				}
				if got := serve(in, newPost(strings.NewReader(whole), "Content-Encoding", c.how)); got.Code != 200 {
					t.Errorf("the stream alone: %d %s", got.Code, got.Body)
				}
			}
		})
	}
}

// An endless repeats a piece forever.
type endless struct {
	head, piece []byte
	came        int
}

func (e *endless) Read(p []byte) (n int, err error) {
	n = copy(p, e.head)
	e.head = e.head[n:]
	for n < len(p) {
		next := copy(p[n:], e.piece[e.came%len(e.piece):])
		n, e.came = n+next, e.came+next
	}
	return n, nil
}

// Empty blocks, frames and members cost work: a body of mostly these
// ends far below its limit, however fast it comes.
func TestPaddedBodiesEnd(t *testing.T) {
	gzipHead := packed(nil)[:10]
	for name, c := range map[string]struct {
		how         string
		head, piece []byte
	}{
		"empty gzip members":     {"gzip", nil, zipped(nil)},
		"empty stored blocks":    {"gzip", gzipHead, []byte{0, 0, 0, 0xff, 0xff}},
		"empty coded blocks":     {"gzip", gzipHead, []byte{0x02, 0x08, 0x20, 0x80, 0x00}},
		"blocks of bare deflate": {"deflate", nil, []byte{0, 0, 0, 0xff, 0xff}},
		"skippable frames":       {"zstd", nil, []byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}},
		"empty frames":           {"zstd", nil, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			in := newIntake(t, &memoryLog{}, plenty)
			in.Bodies = testBodies(189<<20, 128<<20, func() time.Time { return start })
			sent := &endless{head: c.head, piece: c.piece}
			got := serve(in, newPost(sent, "Content-Encoding", c.how))
			if got.Code != 400 || !strings.Contains(got.Body.String(), `"invalid_encoding"`) || sent.came > 1<<20 {
				t.Errorf("%d bytes were read: %d %s", sent.came, got.Code, got.Body)
			}
		})
	}
}

// A tape finds entries 0 to n-1, a few at a time, and fails at one if
// fail is set.
type tape struct {
	searches.Finder // nil: nothing is counted
	n               int
	failAt          int // 0: never
	fail            error
	pages           int
	now             func()
}

func (f *tape) Page(_ context.Context, _ string, search ingest.Search) (*searches.Answer, error) {
	if f.pages++; f.now != nil {
		f.now()
	}
	begin := 0
	if after := search.Start.After; after != nil {
		begin = after.Index + 1
	}
	if f.failAt > 0 && begin >= f.failAt {
		return nil, f.fail
	}
	var result ingest.Result
	for i := begin; i < min(f.n, begin+min(search.Limit, 7)); i++ {
		result.Found = append(result.Found, ingest.Found{Stored: ingest.Stored{Place: ingest.Place{Index: i}, Text: fmt.Appendf(nil, `{"message":"<%d>"}`, i)}})
	}
	if end := begin + len(result.Found); end < f.n {
		result.Next = &ingest.Position{After: &ingest.Place{Index: end - 1}}
	}
	return &searches.Answer{Result: result}, nil
}

// read reads the lines of a request to the end.
func (f *tape) read(t *testing.T, query string, clock func() time.Time) (lines []string, answer *http.Response, err error) {
	t.Helper()
	credentials := identity.NewCredentials(time.Now)
	value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1", Project: "prj_1", State: contract.CredentialActive})
	if err != nil || credentials.Apply(contract.CredentialKey(secret), value) != nil {
		t.Fatal(err)
	}
	logs := &Logs{Service: &searches.Service{Searches: f, Directory: identity.NewDirectory()}, Clock: clock}
	cursors := httpapi.NewCursors(identity.OrganizationOf)
	cursors.Use([]byte("the same in all replicas"))
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Cursors: cursors})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now})
	router.With(guard.RequireAPIKey()).Get("/v1/logs", httpapi.Handle(logs.List))
	server := httptest.NewServer(router)
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/logs"+query, nil)
	testenv.Must(t, err)
	request.Header.Set("X-Api-Key", secret)
	request.Header.Set("Accept", "application/x-ndjson")
	answer, err = server.Client().Do(request)
	testenv.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), answer, err
}

// All matches come, one a line, page by page, and the trailers mark the
// answer as complete.
func TestLinesToTheEnd(t *testing.T) {
	f := &tape{n: 30}
	lines, answer, err := f.read(t, "", time.Now)
	if err != nil || len(lines) != 30 || lines[29] != `{"message":"<29>"}` || f.pages != 5 || answer.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d lines in %d pages, %v, %v", len(lines), f.pages, answer.Header, err)
	}
	if answer.Trailer.Get("Weir-Incomplete") != "false" || answer.Trailer.Get("Weir-Next-Cursor") != "" {
		t.Errorf("trailers %v", answer.Trailer)
	}
}

// A given limit ends the lines, and the cursor continues after them.
func TestLinesToALimit(t *testing.T) {
	lines, answer, err := (&tape{n: 30}).read(t, "?limit=10", time.Now)
	cursor := answer.Trailer.Get("Weir-Next-Cursor")
	if err != nil || len(lines) != 10 || cursor == "" || answer.Trailer.Get("Weir-Incomplete") != "false" {
		t.Fatalf("%d lines, trailers %v, %v", len(lines), answer.Trailer, err)
	}
	lines, _, err = (&tape{n: 30}).read(t, "?limit=1&cursor="+cursor, time.Now)
	if err != nil || len(lines) != 1 || lines[0] != `{"message":"<10>"}` {
		t.Errorf("behind it: %q, %v", lines, err)
	}
}

// An answer that ends early is marked or cut, so that a part never
// looks complete.
func TestLinesThatEndEarly(t *testing.T) {
	overloaded := httpapi.NewProblem(http.StatusTooManyRequests, "overloaded", "Too much.")
	lines, answer, err := (&tape{n: 30, failAt: 14, fail: overloaded}).read(t, "", time.Now)
	if err != nil || len(lines) != 14 || answer.Trailer.Get("Weir-Incomplete") != "true" || answer.Trailer.Get("Weir-Next-Cursor") == "" {
		t.Errorf("overloaded: %d lines, trailers %v, %v", len(lines), answer.Trailer, err)
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	slow := &tape{n: 30, now: func() { now = now.Add(45 * time.Minute) }}
	lines, answer, err = slow.read(t, "", func() time.Time { return now })
	if err != nil || len(lines) != 14 || answer.Trailer.Get("Weir-Incomplete") != "true" || answer.Trailer.Get("Weir-Next-Cursor") == "" {
		t.Errorf("too long: %d lines, trailers %v, %v", len(lines), answer.Trailer, err)
	}
	_, answer, err = (&tape{n: 30, failAt: 14, fail: errors.New("the database has gone")}).read(t, "", time.Now)
	if err == nil || answer.Trailer.Get("Weir-Incomplete") != "" {
		t.Errorf("failed: %v, trailers %v", err, answer.Trailer)
	}
}
