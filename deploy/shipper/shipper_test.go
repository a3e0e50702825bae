package shipper

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestEntries(t *testing.T) {
	for line, want := range map[string]string{
		"plain text \xff":                          `{"level":"info","message":"plain text �","timestamp":"2026-11-21T12:00:00Z"}`,
		`{"no": json`:                              `{"level":"info","message":"{\"no\": json","timestamp":"2026-11-21T12:00:00Z"}`,
		`{"message":"m","level":"WARN","a":1}`:     `{"level":"WARN","message":"m","metadata":{"a":1},"timestamp":"2026-11-21T12:00:00Z"}`,
		`{"msg":"m","time":1769860800123}`:         `{"level":"info","message":"m","timestamp":1769860800123}`,
		`{"msg":7,"error":"text","severity":null}`: `{"level":"info","message":"7","metadata":{"error":"text","severity":null},"timestamp":"2026-11-21T12:00:00Z"}`,
		`{"msg":"m","error":{"type":"E"},"environment":"dev","metadata":{"a":1},"a":2,"b":"<"}`: `{"environment":"dev","error":{"type":"E"},"level":"info","message":"m",` +
			`"metadata":{"a":1,"b":"<"},"timestamp":"2026-11-21T12:00:00Z"}`,
	} {
		if got := (Defaults{Level: "info"}).Entry([]byte(line), now); string(got) != want {
			t.Errorf("%s becomes\n%s, want\n%s", line, got, want)
		}
	}
	var long struct {
		Message  string
		Metadata struct{ Line string }
	}
	testenv.Must(t, json.Unmarshal(Defaults{}.Entry([]byte(strings.Repeat("é", 6000)), now), &long))
	if len(long.Message) > maxMessage || !strings.HasSuffix(long.Message, "é…") || long.Metadata.Line != strings.Repeat("é", 6000) {
		t.Errorf("a long line has a message of %d bytes, and %d in its metadata", len(long.Message), len(long.Metadata.Line))
	}
}

// A server accepts each idempotency key once, after some failures.
type server struct {
	mu       sync.Mutex
	failures []int // statuses of the first answers; 0: accepted, and no answer
	keys     []string
	messages []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body struct{ Logs []struct{ Message string } }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Prefer") != "handling=lenient" {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	if len(s.failures) > 0 {
		status := s.failures[0]
		if s.failures = s.failures[1:]; status > 0 {
			w.WriteHeader(status)
			return
		}
		defer panic(http.ErrAbortHandler)
	}
	if key := r.Header.Get("Idempotency-Key"); !slices.Contains(s.keys, key) {
		s.keys = append(s.keys, key)
		for _, entry := range body.Logs {
			s.messages = append(s.messages, entry.Message)
		}
	}
	fmt.Fprintf(w, `{"processed":%d,"rejected":0}`, len(body.Logs))
}

func (s *server) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

func newShipper(t *testing.T, s *server) *Shipper {
	t.Helper()
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	api, err := client.New(listening.URL, "", 1)
	testenv.Must(t, err)
	return &Shipper{API: api, Defaults: Defaults{Level: "info"}, Now: time.Now, Say: func(text string) { t.Log(text) }}
}

// Every line arrives once and in order, though requests fail and answers are lost.
func TestStreamArrives(t *testing.T) {
	s := &server{failures: []int{500, 429, 0, 503}}
	sending, lines := newShipper(t, s), make(chan Line)
	var text strings.Builder
	var want []string
	for i := range 2500 {
		want = append(want, fmt.Sprint("line ", i))
		fmt.Fprintf(&text, "line %d\r\n\n", i)
	}
	go func() {
		defer close(lines)
		if err := Stream(t.Context(), strings.NewReader(text.String()), lines); err != nil {
			t.Error(err)
		}
	}()
	testenv.Must(t, sending.Run(t.Context(), lines))
	if !slices.Equal(s.got(), want) || sending.Sent != 2500 {
		t.Errorf("%d lines arrived, %d are said to be sent", len(s.got()), sending.Sent)
	}
}

func TestStopsWhenRefused(t *testing.T) {
	sending, lines := newShipper(t, &server{failures: []int{401}}), make(chan Line, 1)
	lines <- Line{Text: []byte("m")}
	close(lines)
	if err := sending.Run(t.Context(), lines); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %v", err)
	}
}

// A followed file goes on behind what was sent, with what replaced it, and
// from its start where it was emptied; half a line waits for its rest.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	s := &server{}
	write := func(flag int, text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o600)
		testenv.Must(t, err)
		_, err = file.WriteString(text)
		testenv.Must(t, err)
		testenv.Must(t, file.Close())
	}
	follow := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		sending, lines := newShipper(t, s), make(chan Line)
		var running sync.WaitGroup
		running.Go(func() { _ = (&Follower{Path: path, StateDir: dir}).Follow(ctx, lines) })
		running.Go(func() { _ = sending.Run(ctx, lines) })
		return func() { cancel(); running.Wait() }
	}
	expect := func(want ...string) {
		t.Helper()
		testenv.Eventually(t, func() error {
			if got := s.got(); !slices.Equal(got, want) {
				return fmt.Errorf("got %q, want %q", got, want)
			}
			return nil
		})
	}
	kept := func() string {
		text, _ := os.ReadFile((&Follower{Path: path, StateDir: dir}).stateFile())
		return string(text)
	}
	stop := follow()
	write(os.O_APPEND, "a\nb\nhal")
	expect("a", "b")
	testenv.Eventually(t, func() error {
		if !strings.Contains(kept(), `"offset":4`) {
			return fmt.Errorf("the position is %q", kept())
		}
		return nil
	})
	stop()
	write(os.O_APPEND, "f\nc\n")
	stop = follow()
	defer func() { stop() }()
	expect("a", "b", "half", "c")
	testenv.Must(t, os.Rename(path, path+".1"))
	write(os.O_APPEND, "d\n")
	expect("a", "b", "half", "c", "d")
	write(os.O_TRUNC, "")
	time.Sleep(2 * pollInterval) // it is seen to be shorter
	write(os.O_APPEND, "e\n")
	expect("a", "b", "half", "c", "d", "e")
}
