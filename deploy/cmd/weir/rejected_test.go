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

// What was rejected is listed with the newest sample's fault and fix.
func TestRejected(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		fmt.Fprint(w, `{"items":[{"key":"key_1","code":"invalid_level","entries":7,"last_at":"2026-11-21T12:00:00Z","samples":[{"pointer":"/logs/0/level","detail":"No level.","fix":"Send one."}]},
			{"key":"key_2","code":"invalid_json","entries":1,"last_at":"2026-11-21T12:00:00Z","samples":[]}],"next_cursor":null}`)
	}))
	defer server.Close()
	api, err := client.New(server.URL, "", 1)
	testenv.Must(t, err)
	var out strings.Builder
	command := rejectedCommand{Limit: 10, Code: "invalid_level"}
	command.Project = "prj_1"
	testenv.Must(t, command.print(t.Context(), api, terminal.Of(&out)))
	for _, want := range []string{"7", "invalid_level", "key_1", "/logs/0/level No level. Send one.", "key_2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed %s without %s", out.String(), want)
		}
	}
	if !strings.HasPrefix(asked, "/projects/prj_1/rejected-entries?code=invalid_level") {
		t.Errorf("asked for %s", asked)
	}
}
