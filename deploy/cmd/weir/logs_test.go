package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// The newest entries that match are printed, the newest last, and none of
// their text commands the terminal.
func TestLogs(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("x-api-key") != "key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		asked = r.URL.Query().Get("q") + " " + r.URL.Query().Get("from")
		fmt.Fprint(w, `{"items":[{"id":"3","environment":"prod","entry":{"timestamp":"2026-11-21T09:30:02Z","level":"error","message":"no \u001b[2J\nroute","error":{"type":"IOError","message":"x"}}},`+
			`{"id":"2","environment":"dev","entry":{"timestamp":"2026-11-21T09:30:01.5Z","level":"info","message":"cart opened"}},`+
			`{"id":"1","entry":{}}],"next_cursor":null}`)
	}))
	defer server.Close()
	api, err := client.New(server.URL, "", 1)
	testenv.Must(t, err)
	command := logsCommand{Query: []string{"level:error", "OR", "cart"}, Since: time.Hour, Limit: 2, reader: reader{APIKey: "key"}}
	var out strings.Builder
	testenv.Must(t, command.print(t.Context(), api, &out, time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)))
	want := "2026-11-21 09:30:01.500 INFO  dev  cart opened\n2026-11-21 09:30:02.000 ERROR prod  no \\x1b[2J route  IOError: x\n"
	if out.String() != want || asked != "level:error OR cart 2026-11-21T09:00:00Z" {
		t.Errorf("asked for %q, printed %q", asked, out.String())
	}
	out.Reset()
	command.JSON, command.Limit = true, 1
	if err := command.print(t.Context(), api, &out, time.Now()); err != nil || !strings.HasPrefix(out.String(), `{"timestamp"`) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%q, %v", out.String(), err)
	}
	command.APIKey = "another"
	if err := command.print(t.Context(), api, &out, time.Now()); err == nil {
		t.Error("a wrong key reads")
	}
}

// Counts are tables of values, or what the API has.
func TestLogsCount(t *testing.T) {
	const counted = `{"entries":12346,"fields":[{"field":"service","values":[{"value":"cart\u009b","entries":12340}],"without":6}],"exact_after":"2026-11-21T09:30:00Z"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked := r.URL.String(); asked != "/logs/stats?by=service&from=2026-11-21T09%3A00%3A00Z&q=level%3Aerror" {
			t.Errorf("asked for %s", asked)
		}
		fmt.Fprint(w, counted)
	}))
	defer server.Close()
	api, err := client.New(server.URL, "", 1)
	testenv.Must(t, err)
	command := logsCommand{Query: []string{"level:error"}, Since: time.Hour, Limit: 2, CountBy: []string{"service"}}
	for asJSON, want := range map[bool]string{
		true: counted + "\n",
		false: "ENTRIES  service\n12,340   cart\\u009b\n6        (none)\n\n12,346 entries match.\n" +
			"The count is incomplete: it is exact after 2026-11-21 09:30. Name a shorter time.\n",
	} {
		var out strings.Builder
		command.JSON = asJSON
		testenv.Must(t, command.print(t.Context(), api, &out, time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)))
		if out.String() != want {
			t.Errorf("got\n%s", out.String())
		}
	}
}

// Patterns are a table, the new ones by a time of their own, or what the API has.
func TestLogsPatterns(t *testing.T) {
	const found = `{"patterns":[{"pattern":"took <num>\u009b ms","entries":12340,"share":0.995,"levels":{"info":12000,"error":340},"last_seen":"2026-11-21T09:59:00Z"}],` +
		`"entries":12346,"compared":{"entries":77,"incomplete":true},"incomplete":true}`
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		fmt.Fprint(w, found)
	}))
	defer server.Close()
	api, err := client.New(server.URL, "", 1)
	testenv.Must(t, err)
	command := logsCommand{Query: []string{"level:error"}, Since: time.Hour, Limit: 200, Patterns: true}
	for _, c := range []struct {
		asJSON      bool
		newSince    time.Duration
		asked, want string
	}{
		{true, 0, "/logs/patterns?from=2026-11-21T09%3A00%3A00Z&q=level%3Aerror&top=100", found + "\n"},
		{false, 30 * time.Minute, "/logs/patterns?q=level%3Aerror&since=2026-11-21T09%3A30%3A00Z&top=100",
			"ENTRIES  SHARE   LEVELS                  LAST SEEN         PATTERN\n12,340   99.5 %  340 error, 12,000 info  2026-11-21 09:59  took <num>\\u009b ms\n\n" +
				"12,346 entries were looked at.\nThese are a part of those that match. Name a shorter time.\n" +
				"Compared with 77 entries before.\nThese are a part of them: patterns may be older.\n"},
	} {
		var out strings.Builder
		command.JSON, command.NewSince = c.asJSON, c.newSince
		testenv.Must(t, command.print(t.Context(), api, &out, time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)))
		if asked != c.asked || out.String() != c.want {
			t.Errorf("asked for %s, got\n%s", asked, out.String())
		}
	}
	if err := (&logsCommand{Since: 1, Limit: 1, NewSince: time.Hour}).Validate(); err == nil {
		t.Error("--new-since is taken without --patterns")
	}
}
