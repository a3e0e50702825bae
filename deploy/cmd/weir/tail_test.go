package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/testenv"
)

// A tail is printed as it comes, what was skipped is said, and it goes on after
// its end until it is refused.
func TestTail(t *testing.T) {
	event := func(message string) string {
		return `event: entry` + "\n" + `data: {"id":"1","environment":"prod","entry":{"timestamp":"2026-11-21T09:30:02Z","level":"info","message":"` + message + `"}}` + "\n\n"
	}
	answers := []string{
		"retry: 2000\n\n" + event("first") + ": heartbeat\n\nevent: skipped\ndata: {\"entries\":7,\"reason\":\"slow\"}\n\nevent: end\ndata: {\"reason\":\"time_is_up\"}\n\n",
		event("second"), // which is cut
		"",
	}
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		if answers[0] == "" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"code":"api_key_revoked","detail":"The API key was revoked."}`)
			return
		}
		fmt.Fprint(w, answers[0])
		answers = answers[1:]
	}))
	defer server.Close()
	api, err := client.New(server.URL, "", 1)
	testenv.Must(t, err)
	command := tailCommand{Query: []string{"a", "b"}, Project: "prj_1", reader: reader{APIKey: "key"}}
	var out, said strings.Builder
	err = command.follow(t.Context(), api, terminal.Of(&out), &said)
	if err == nil || !strings.Contains(err.Error(), "api_key_revoked") {
		t.Errorf("it ended with %v", err)
	}
	want := "2026-11-21 09:30:02.000 INFO  prod  first\n2026-11-21 09:30:02.000 INFO  prod  second\n"
	if out.String() != want || asked != "project=prj_1&q=a+b" {
		t.Errorf("asked for %q, printed %q", asked, out.String())
	}
	if text := said.String(); !strings.HasPrefix(text, "7 entries are not shown: ") || !strings.Contains(text, "the connection was cut") || strings.Count(text, "\n") != 2 {
		t.Errorf("said %q", text)
	}
}
