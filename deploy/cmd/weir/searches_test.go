package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/testenv"
)

// A saved search gives the command line what it leaves open.
func TestSavedSearches(t *testing.T) {
	items := `{"name":"Checkout fails","project":"prj_1","query":"checkout OR cart","last":"24h"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"items":[%s],"next_cursor":null}`, items)
	}))
	defer server.Close()
	api, err := client.New(server.URL, "", 1)
	testenv.Must(t, err)
	var out strings.Builder
	if err := (&searchesCommand{Limit: 10}).print(t.Context(), api, terminal.Of(&out)); err != nil || !strings.Contains(out.String(), "Checkout fails") || !strings.Contains(out.String(), "checkout OR cart") {
		t.Errorf("printed %q, %v", out.String(), err)
	}
	command := logsCommand{Saved: "checkout fails", Query: []string{"level:error"}, Since: time.Hour}
	if err := command.useSaved(t.Context(), api); err != nil || strings.Join(command.Query, " ") != "(checkout OR cart) level:error" ||
		command.Project != "prj_1" || command.Since != 24*time.Hour {
		t.Errorf("searches by %+v, %v", command, err)
	}
	items = `{"name":"A","query":"","from":"2026-11-21T09:00:00Z","to":"2026-11-21T10:00:00Z"}`
	command = logsCommand{Saved: "A", Since: time.Hour}
	if err := command.useSaved(t.Context(), api); err != nil || len(command.Query) != 0 || command.To.Sub(command.From) != time.Hour {
		t.Errorf("searches by %+v, %v", command, err)
	}
	items = items + "," + items
	if err := command.useSaved(t.Context(), api); err == nil || !strings.Contains(err.Error(), "2 saved searches") {
		t.Errorf("two of a name: %v", err)
	}
}
