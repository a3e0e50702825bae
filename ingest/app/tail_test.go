package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// A tail is an open one.
type tail struct {
	t     testing.TB
	lines *bufio.Scanner
	close func()
}

// tail opens a tail, which is followed from the answer's first line on.
func (p *replica) tail(key, query string) *tail {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), testenv.Patience)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/v1/logs/tail"+query, nil)
	testenv.Must(p.t, err)
	request.Header.Set("x-api-key", key)
	response, err := p.client.Do(request)
	testenv.Must(p.t, err)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		p.t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	followed := &tail{t: p.t, lines: bufio.NewScanner(response.Body), close: func() {
		cancel()
		_ = response.Body.Close()
	}}
	followed.lines.Buffer(nil, 1<<20)
	p.t.Cleanup(followed.close)
	return followed
}

// next returns the next event.
func (f *tail) next() (event, data string) {
	f.t.Helper()
	for f.lines.Scan() {
		line := f.lines.Text()
		switch {
		case strings.HasPrefix(line, "event: "):
			event = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data = line[len("data: "):]
		case line == "" && event != "":
			return event, data
		}
	}
	f.t.Fatalf("the tail was cut: %v", f.lines.Err())
	return "", ""
}

// shows checks that these entries come next, byte for byte.
func (f *tail) shows(want ...string) {
	f.t.Helper()
	var got []string
	for range want {
		event, data := f.next()
		var item struct{ Entry json.RawMessage }
		if err := json.Unmarshal([]byte(data), &item); err != nil || event != "entry" {
			f.t.Fatalf("%s %.200s: %v", event, data, err)
		}
		got = append(got, string(item.Entry))
	}
	slices.Sort(got)
	if slices.Sort(want); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		f.t.Fatalf("got\n%q, want\n%q", got, want)
	}
}

// ends checks that the tail ends with a reason.
func (f *tail) ends(reason string) {
	f.t.Helper()
	if event, data := f.next(); event != "end" || data != `{"reason":"`+reason+`"}` || f.lines.Scan() {
		f.t.Fatalf("%s %s, want the end for %s", event, data, reason)
	}
}

func (p *replica) accepts(key string, entries ...string) {
	p.t.Helper()
	if got := p.post(key, bodyOf(entries...)); got.status != 200 {
		p.t.Fatalf("%d %s", got.status, got.text)
	}
}

// What is accepted comes in the tails of its organization, byte for byte and
// as GET /v1/logs has it, as far as they ask for it, and in no other.
func testTail(t *testing.T, r *rig, p *replica) {
	r.account("org_tail", nil)
	r.account("org_not_tail", nil)
	full, second, foreign := r.key("org_tail", "prj_tail", nil), r.key("org_tail", "prj_second", nil), r.key("org_not_tail", "prj_not_tail", nil)
	own := r.key("org_tail", "prj_tail", func(c *contract.Credential) { c.Access = contract.AccessProject })
	write := r.key("org_tail", "prj_tail", func(c *contract.Credential) { c.Access = contract.AccessWrite })
	p.admits(full, second, foreign, own, write)
	all, others, alone := p.tail(full, ""), p.tail(foreign, ""), p.tail(own, "")
	filtered := p.tail(full, "?project=prj_second&level=error&level=warn&environment=prod&q=metadata.status:>=500")
	odd := `{"timestamp":"2026-01-01T00:00:00Z","level":"warn","message":"\u0000 <&> \u2028 é \/ \n","metadata":{"a":1e400,"a":-0.0}}`
	p.accepts(full, odd)
	all.shows(odd)
	alone.shows(odd)
	failed := `{"timestamp":"2026-01-01T00:00:00Z","level":"error","message":"m","metadata":{"status":503}}`
	p.accepts(second, entry("fine"), failed)
	all.shows(entry("fine"), failed)
	filtered.shows(failed)
	p.accepts(full, entry("last"))
	alone.shows(entry("last"))
	p.accepts(foreign, entry("theirs"))
	others.shows(entry("theirs"))
	if got := p.get(write, "/v1/logs/tail"); got.status != 403 || got.code() != "forbidden" {
		t.Errorf("a key that may only write: %d %s", got.status, got.text)
	}
	for key, query := range map[string]string{own: "?project=prj_second", full: "?project=prj_not_tail"} {
		if got := p.get(key, "/v1/logs/tail"+query); got.status != 404 || got.code() != "not_found" {
			t.Errorf("%s: %d %s", query, got.status, got.text)
		}
	}
	event, data := all.next()
	if page := string(p.listed(full, "?q=last")); event != "entry" || !strings.Contains(page, `[`+data+`]`) {
		t.Errorf("%s %s, and GET /v1/logs has %s", event, data, page)
	}
}

// listed is a page with an entry.
func (p *replica) listed(key, query string) (page []byte) {
	p.t.Helper()
	testenv.Eventually(p.t, func() error {
		if page = p.get(key, "/v1/logs"+query).text; !strings.Contains(string(page), `"entry"`) {
			return fmt.Errorf("nothing is found: %s", page)
		}
		return nil
	})
	return page
}

// A tail ends once its key does, or its project is deleted; what is deleted
// is not shown to others either.
func testTailsEnd(t *testing.T, r *rig, p *replica) {
	r.account("org_ends", nil)
	key, stays := r.key("org_ends", "prj_ends", nil), r.key("org_ends", "prj_stays", nil)
	p.admits(key, stays)
	all, deleted, revoked := p.tail(stays, ""), p.tail(stays, "?project=prj_ends"), p.tail(key, "")
	r.PublishEvent(contract.TopicCredentials, contract.TypeCredentialChanged, contract.CredentialKey(key), contract.Credential{
		Kind: contract.CredentialAPIKey, ID: "ended", Organization: "org_ends", Project: "prj_ends", State: contract.CredentialRevoked, Version: 2,
	})
	revoked.ends("credential_ended")
	r.PublishEvent(contract.TopicTenants, contract.TypeDeletionRequested, "prj_ends", contract.DeletionRequested{Organization: "org_ends", Project: "prj_ends"})
	deleted.ends("project_deleted")
	again := r.key("org_ends", "prj_ends", nil)
	p.admits(again) // it may write here, as only its project's holder is not revoked
	p.accepts(again, entry("hidden"))
	p.accepts(stays, entry("shown"))
	all.shows(entry("shown"))
}

// A tail ends when its time is up, and at once when its process stops. Of an
// organization as many run as it may have.
func TestTailsAreBounded(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	p := r.start(func(c *app.Config) { c.Tail.Tails, c.Tail.TailTime = 8, 200*time.Millisecond })
	p.admits(key)
	p.tail(key, "").ends("time_is_up")
	p.stop()
	p = r.start(func(c *app.Config) { c.Tail.Tails = 8 })
	last := p.tail(key, "")
	if got := p.get(key, "/v1/logs/tail"); got.status != 429 || got.code() != "overloaded" {
		t.Errorf("one tail too many: %d %s", got.status, got.text)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.stop()
	}()
	last.ends("server_stops")
	select {
	case <-stopped:
	case <-time.After(30 * time.Second): // it drains for 45
		t.Error("a tail holds up the stop")
	}
}
