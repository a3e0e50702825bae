package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/testenv"
)

// Rules are read and tried as a file has them.
func TestRulesCommands(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
		switch {
		case strings.HasSuffix(r.URL.Path, "/preview"):
			fmt.Fprint(w, `{"since":"2026-11-21T09:30:00Z","groups":3,"samples":7,"unknown_samples":2,"incomplete":true,"more_joins":1,
				"joins":[{"into":{"title":"All"},"groups":[{"id":"grp_0123456789","title":"A\u001b[31m","count":1200},{"id":"grp_1","title":"B","count":1}]}],
				"splits":[{"group":{"id":"grp_2","title":"C"},"into":[{"id":"grp_2","title":"C"},{"title":"C","values":["metadata.tenant: a"]}]}],
				"moves":[{"group":{"id":"grp_3","title":"D"},"into":[{"title":"D"}]}]}`)
		case strings.HasSuffix(r.URL.Path, "/versions"):
			fmt.Fprint(w, `{"items":[{"version":2,"since":"2026-11-21T09:30:00Z","actor":"mem_1","actor_name":"Ada","note":"noise"}],"next_cursor":null}`)
		default:
			fmt.Fprint(w, `{"version":2,"since":"2026-11-21T09:30:00Z","rules":"# people\nscrub email\n"}`)
		}
	}))
	t.Cleanup(server.Close)
	api, err := client.New(server.URL, "", 2)
	testenv.Must(t, err)
	of := projectReader{Project: "prj_1"}
	var out strings.Builder
	testenv.Must(t, (&rulesGet{projectReader: of}).print(t.Context(), api, terminal.Screen{}, &out))
	if out.String() != "# people\nscrub email\n" {
		t.Errorf("printed %q", out.String())
	}
	out.Reset()
	testenv.Must(t, (&rulesPreview{projectReader: of}).print(t.Context(), api, terminal.Screen{}, &out, "scrub ip"))
	for _, text := range []string{"joined:\n  grp_01234567  A", "(1,200 errors)", "  → new  All\n", "taken apart:\n  grp_2  C\n  → grp_2  C\n  → new  C  metadata.tenant: a\n",
		"goes on in a new group:\n  grp_3  D\n  → new  D\n", "and 1 more changes", "7 samples of 3 groups", "there are more", "not on 2 others"} {
		if !strings.Contains(out.String(), text) || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%q is not in:\n%s", text, out.String())
		}
	}
	file := filepath.Join(t.TempDir(), "errors.rules")
	testenv.Must(t, os.WriteFile(file, []byte("ignore function:a\n"), 0o600))
	text, err := rulesFile{file}.read()
	testenv.Must(t, err)
	change := rulesNote{Note: "n", IfVersion: -1}.change()
	change.Rules = &text
	if rules, err := api.SetRules(t.Context(), "key", "prj_1", change); err != nil || rules.Version != 2 {
		t.Errorf("%+v, %v", rules, err)
	}
	if _, err := api.RestoreRules(t.Context(), "key", "prj_1", 1, rulesNote{IfVersion: 2}.change()); err != nil {
		t.Error(err)
	}
	want := []string{
		"GET /projects/prj_1/error-rules ", `POST /projects/prj_1/error-rules/preview {"rules":"scrub ip"}`,
		`PUT /projects/prj_1/error-rules {"rules":"ignore function:a\n","note":"n"}`, `POST /projects/prj_1/error-rules/versions/1/restore {"if_version":2}`,
	}
	if strings.Join(asked, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked\n%s", strings.Join(asked, "\n"))
	}
}
