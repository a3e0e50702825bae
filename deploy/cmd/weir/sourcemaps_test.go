package main

import (
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/testenv"
)

// fakeMaps is an API that has the map of b.js, and notes what it is asked.
func fakeMaps(t *testing.T) (api *client.Client, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var requests []string
	busy := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost && busy {
			busy = false
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"code":"overloaded"}`)
			return
		}
		text := ""
		if r.Method == http.MethodPost {
			unpacked, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body, _ := io.ReadAll(unpacked)
			text = " " + string(body)
		}
		requests = append(requests, r.Method+" "+r.URL.String()+text)
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"items":[{"id":"smp_b","release":"1.0","name":"~/static/js/b.js","sha256":"%x","size":5,"uploaded":"2026-11-21T09:30:00Z","used":"2026-11-22"}],"next_cursor":null}`,
				sha256.Sum256([]byte("map b")))
			return
		}
		fmt.Fprint(w, `{"id":"smp_a"}`)
	}))
	t.Cleanup(server.Close)
	api, err := client.New(server.URL, "", 2)
	testenv.Must(t, err)
	return api, func() []string {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(requests)
		return requests
	}
}

// All maps of a directory are uploaded but those that are there. A busy
// server is asked again.
func TestSourcemapsUpload(t *testing.T) {
	api, asked := fakeMaps(t)
	directory := t.TempDir()
	for name, text := range map[string]string{
		"a.js.map": "map a", "a.js": "a()\n//# debugId=85314830-023f-4cf1-a267-535f4e37bb17\n", "js/b.js.map": "map b", "a.css.map": "style", "index.html": "",
	} {
		path := filepath.Join(directory, name)
		testenv.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testenv.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	command := sourcemapsUpload{Directory: directory, Release: "1.0", URLPrefix: "https://cdn.example/static/"}
	command.APIKey, command.Project = "key", "prj_1"
	var out strings.Builder
	testenv.Must(t, command.upload(t.Context(), api, &out))
	want := []string{
		"GET /projects/prj_1/source-maps?limit=1000&release=1.0",
		"POST /projects/prj_1/source-maps?debug_id=85314830-023f-4cf1-a267-535f4e37bb17&name=~%2Fstatic%2Fa.js&release=1.0 map a",
	}
	if got := asked(); !slices.Equal(got, want) {
		t.Errorf("asked %q", got)
	}
	for _, line := range []string{"of 2  a.js.map  5 B  uploaded\n", "of 2  js/b.js.map  5 B  was there\n", "1 uploaded, 1 were there.\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("there is no %q in\n%s", line, out.String())
		}
	}
	command.Directory = t.TempDir()
	if err := command.upload(t.Context(), api, &out); err == nil || !strings.Contains(err.Error(), "no file *.map") {
		t.Errorf("of an empty directory: %v", err)
	}
}

// Maps are listed, and those of a release deleted.
func TestSourcemapsDelete(t *testing.T) {
	api, asked := fakeMaps(t)
	list := sourcemapsList{Limit: 10}
	list.APIKey, list.Project = "key", "prj_1"
	var out strings.Builder
	testenv.Must(t, list.print(t.Context(), api, terminal.Screen{Writer: &out}))
	if !strings.Contains(out.String(), "smp_b  1.0      ~/static/js/b.js  5 B") {
		t.Errorf("listed\n%s", out.String())
	}
	command := sourcemapsDelete{Release: "1.0"}
	command.projectReader = list.projectReader
	testenv.Must(t, command.delete(t.Context(), api, &out))
	if got := asked(); !slices.Contains(got, "DELETE /projects/prj_1/source-maps/smp_b") || !strings.HasSuffix(out.String(), "1 deleted.\n") {
		t.Errorf("asked %q, got\n%s", got, out.String())
	}
	for _, wrong := range []sourcemapsDelete{{}, {Release: "1.0", Maps: []string{"smp_b"}}} {
		if wrong.Validate() == nil {
			t.Errorf("%+v is valid", wrong)
		}
	}
}
