package fairness

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

// measured is a result with d for each view, except slow samples of one
// view that took longer.
func measured(name string, d time.Duration, slow int, longer time.Duration) *result {
	r := &result{attack: attack{Name: name}}
	for view := range r.took {
		for i := range 400 {
			if view == search && i < slow {
				r.took[view].Add(longer)
			} else {
				r.took[view].Add(d)
			}
		}
	}
	return r
}

// The table marks missed goals and those that too few samples leave
// open, and nothing else.
func TestTableMarksMissedGoals(t *testing.T) {
	refused := &outcome{}
	refused.count("429 rate_limited")
	quick := measured(alone, 200*time.Millisecond, 0, 0)
	fine := measured("fine", 399*time.Millisecond, 0, 0)
	slow := measured("slow", 10*time.Millisecond, 12, 401*time.Millisecond)
	open := measured("open", 10*time.Millisecond, 4, 402*time.Millisecond)
	lawful := measured("lawful", 200*time.Millisecond, 0, 0)
	fine.answers, open.answers = refused, refused
	slow.answers, slow.refused, slow.peak = &outcome{Times: map[string]int64{"200": 7}}, 1, 600<<20
	lawful.attack.Lawful, lawful.answers = true, &outcome{Times: map[string]int64{"200": 3}}
	var text strings.Builder
	missed, err := write(&text, &Command{Each: time.Second}, []*result{quick, fine, slow, open, lawful})
	if err != nil || missed != 4 {
		t.Errorf("%d goals are said to be missed, %v; want the search, the refused post, the memory and the noisy one, who was never refused", missed, err)
	}
	for _, want := range []string{
		"10.0/401 [401-401]!", "399.0/399 [399-399] ", "10.0/10 [10-402]?", "600 MB!", " 1! ", "7 × 200!", "3 × 200 (within its limits)\n", "1 × 429 rate_limited\n",
		"1 are undecided (?), missed: 4 (!)", "all attacks",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}

// A noisy tenant's outcomes are read from the raw answers.
func TestDescribe(t *testing.T) {
	for want, answer := range map[string]struct {
		status     int
		head, tail string
	}{
		"200":                   {200, `{"items":[]}`, ""},
		"200 incomplete":        {200, `{"items":[`, `],"incomplete":true}`},
		"429 overloaded":        {429, `{"code":"overloaded"}`, ""},
		"400 body_too_large":    {400, `{"code":"body_too_large"}`, ""},
		"502":                   {502, `<html>`, ""},
		"400 invalid_timestamp": {400, `{"code":"invalid_timestamp","incomplete":true}`, ""},
	} {
		if got := describe(answer.status, []byte(answer.head), []byte(answer.tail)); got != want {
			t.Errorf("described as %q, want %q", got, want)
		}
	}
}

func body(name string) []byte { return scenarios().Bodies[name].body(&noisy{}, 1) }

// The attacks send what they name: legal batches if intended, of
// the named size.
func TestAttackingBodies(t *testing.T) {
	for name, body := range map[string][]byte{
		"new errors":   body("new-errors"),
		"large stacks": body("large-stacks"),
	} {
		var batch struct {
			Logs []struct {
				Error struct {
					Type       string
					StackTrace []string `json:"stack_trace"`
				}
			}
		}
		if err := json.Unmarshal(body, &batch); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		types := map[string]bool{}
		for _, entry := range batch.Logs {
			types[entry.Error.Type] = true
		}
		if len(types) != len(batch.Logs) {
			t.Errorf("%s: %d types in %d entries", name, len(types), len(batch.Logs))
		}
	}
	if large := largeStack(); len(large) < 100<<10 || len(large) > 102<<10 {
		t.Errorf("a large stack has %d bytes", len(large))
	}
}

// Every entry of the mixed batch is legal, and the body is not large.
func TestMixedIsLegal(t *testing.T) {
	body := scenarios().Bodies["mixed"].body(&noisy{}, 1<<32)
	judged, err := ingest.NewParser(ingest.DefaultLimits()).ParseKeyed(append(make([]byte, 0, len(body)+ingest.Padding), body...))
	if err != nil || judged.Rejected > 0 || len(judged.Accepted) != 300+3 || len(body) > 1<<20 {
		t.Errorf("%d bytes: %d entries accepted, %d rejected, %v", len(body), len(judged.Accepted), judged.Rejected, err)
	}
}

// An endless body decompresses to its size in white space, and
// then continues empty.
func TestInflate(t *testing.T) {
	reader, writer := io.Pipe()
	n := &noisy{}
	testenv.Must(t, packEndless(t.Context(), n))
	ended := make(chan error, 1)
	go func() { ended <- n.endless.inflate(writer, 2) }()
	unpacked, err := gzip.NewReader(reader)
	testenv.Must(t, err)
	text := make([]byte, 2<<20+len(`{"logs":[`))
	if _, err := io.ReadFull(unpacked, text); err != nil || strings.TrimSpace(string(text)) != `{"logs":[` {
		t.Fatalf("it begins with %q, %v", text[:20], err)
	}
	_ = reader.Close()
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it ended with %v", err)
	}
}

// Every attack is found by its own name; another name is refused with
// the list of names.
func TestAttacksHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range Attacks() {
		if found, err := chosen([]string{name}); err != nil || len(found) != 1 || found[0].Name != name || seen[name] || found[0].Does == "" {
			t.Errorf("attack %q: %+v, %v", name, found, err)
		}
		seen[name] = true
	}
	if _, err := chosen([]string{"none"}); err == nil || !strings.Contains(err.Error(), Attacks()[0]) {
		t.Errorf("an unknown name: %v", err)
	}
}

// A large answer is read to its end, and only its two ends are kept: the
// last names the next page.
func TestOutcomeReadsLargeAnswers(t *testing.T) {
	found := &outcome{}
	body := `{"items":["` + strings.Repeat("x", 1<<20) + `"],"incomplete":true,"next_cursor":"c"}`
	tail := found.read(&http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))})
	if found.String() != "1 × 200 incomplete" || !found.refused() || cursorOf(tail) != "c" {
		t.Errorf("answered %s, and the next page is %q", found, cursorOf(tail))
	}
}

// Every request and body of every attack is complete: a name that is unknown
// panics, and a part of one is left in the text.
func TestAttacksAreComplete(t *testing.T) {
	n := &noisy{keys: []string{"key"}, groups: []string{"group"}, browser: &subject.Browser{}}
	for _, a := range scenarios().Attacks {
		if connecting[a.Name] == nil && (asking[a.Name] == nil) == (len(a.Asks) == 0) {
			t.Errorf("%s has no requests, or has them twice", a.Name)
		}
		for worker := range a.Asks {
			request := a.inTurn(n, worker, 1)
			body, err := io.ReadAll(request.body)
			if err != nil || strings.ContainsAny(request.address, "$ ") || bytes.ContainsAny(body, "$") || len(request.address) < 5 {
				t.Errorf("%s asks for %s %q %.300s, %v", a.Name, request.method, request.address, body, err)
			}
		}
		for _, what := range a.Prepare {
			name := what[strings.LastIndexByte(what, ' ')+1:]
			if scenarios().Bodies[name].Entries == 0 && preparing[what] == nil {
				t.Errorf("%s prepares %s", a.Name, what)
			}
		}
	}
	for name, entries := range scenarios().Bodies {
		if text := entries.body(n, 1); !json.Valid(text) || bytes.ContainsAny(text, "$\x00") {
			t.Errorf("%s: %.300s", name, text)
		}
	}
}
