package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/profile"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/testenv"
)

const (
	groupA = "grp_aaaaaaaa00000000000000000000000a"
	groupB = "grp_aaaaaaab00000000000000000000000b"
)

// fakeAPI answers as the API does, and notes what it is asked.
func fakeAPI(t *testing.T) (api *client.Client, asked func() string) {
	t.Helper()
	var requests []string
	group := func(id, title, more string) string {
		return fmt.Sprintf(`{"id":%q,"project":"prj_1","title":%q,"status":"unresolved","count":12345,"levels":["error","fatal"],`+
			`"first_seen":"2026-11-21T09:00:00Z","last_seen":"2026-11-21T09:30:00Z"%s}`, id, title, more)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/projects/prj_1/error-groups", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			fmt.Fprintf(w, `{"items":[%s],"next_cursor":"more"}`, strings.ReplaceAll(group(groupA, "TypeError: no ESC total", ""), "ESC", `\u001b[2J`))
			return
		}
		fmt.Fprintf(w, `{"items":[%s],"next_cursor":null}`, group(groupB, "E: b", ""))
	})
	mux.HandleFunc("PATCH /error-groups/"+groupA, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, string(body))
		fmt.Fprint(w, strings.Replace(group(groupA, "TypeError: no total", ""), "unresolved", "resolved", 1))
	})
	mux.HandleFunc("POST /error-groups/{id}/{does}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, string(body))
		fmt.Fprint(w, group(groupA, "TypeError: no total", `,"merged":1,"members":[{"id":"`+groupB+`","title":"E: b","count":3}]`))
	})
	mux.HandleFunc("/error-groups/"+groupA, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, group(groupA, "TypeError: no total", `,"culprit":"total (cart.js)","members":[{"id":"grp_b","title":"E: b","count":3}],"occurrences":[{"entry_id":"e","hash":"0123","time":"2026-11-21T09:30:00Z","level":"error",`+
			`"environment":"prod","message":"checkout failed","exceptions":[{"type":"TypeError","message":"no total","more_frames":2}],"frames":[`+
			`{"exception":0,"function":"total","file":"/srv/cart.js","line":41,"in_app":true},{"exception":0,"module":"node","function":"emit","in_app":false}]}]`))
	})
	mux.HandleFunc("GET /error-groups/"+groupA+"/occurrences", func(w http.ResponseWriter, r *http.Request) {
		item := `{"id":%q,"environment":"prod","entry":{"timestamp":"2026-11-21T09:30:00Z","level":"error","message":%q}}`
		if r.URL.Query().Get("cursor") == "" {
			fmt.Fprintf(w, `{"items":[`+item+`],"next_cursor":"more","incomplete":true}`, "e2", "second")
			return
		}
		fmt.Fprintf(w, `{"items":[`+item+`],"next_cursor":null}`, "e1", "first")
	})
	mux.HandleFunc("/organizations/org_1/balance", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"granted":536870912000,"consumed":1288490188,"remaining":535582421812,"period":{"start":"2026-11-01T00:00:00Z","end":"2026-12-01T00:00:00Z"}}`)
	})
	mux.HandleFunc("/organizations/org_1/usage", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"items":[{"at":"2026-11-21T00:00:00Z","day":"2026-11-21","key":"key_1","requests":3,"entries":12000,"bytes":1288490188}],"next_cursor":null}`)
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Header.Get("X-Api-Key")+r.Header.Get("Authorization")+" "+r.URL.String())
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	api, err := client.New(server.URL, "", 1)
	testenv.Must(t, err)
	return api, func() string {
		defer func() { requests = nil }()
		return strings.Join(requests, "\n")
	}
}

// Groups are listed for people, safe for a terminal, and for programs as
// the API has them.
func TestErrorsList(t *testing.T) {
	api, asked := fakeAPI(t)
	command := errorsList{Text: []string{"no", "total"}, Status: "unresolved", Since: time.Hour, Limit: 2, Level: []string{"fatal"}}
	command.APIKey, command.Project = "key", "prj_1"
	var out strings.Builder
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	testenv.Must(t, command.print(t.Context(), api, terminal.Screen{Writer: &out}, now))
	row := groupA + `  12,345  2026-11-21 09:30  fatal  unresolved  TypeError: no \x1b[2J total` + "\n"
	if !strings.Contains(out.String(), row) {
		t.Errorf("got\n%s", out.String())
	}
	first, _, _ := strings.Cut(asked(), "\n")
	if first != "key /projects/prj_1/error-groups?from=2026-11-21T09%3A00%3A00Z&level=fatal&limit=2&q=no+total&status=unresolved" {
		t.Errorf("asked %s", first)
	}
	out.Reset()
	command.JSON, command.Limit = true, 1
	testenv.Must(t, command.print(t.Context(), api, terminal.Screen{Writer: &out}, now))
	var group client.ErrorGroup
	if err := json.Unmarshal([]byte(out.String()), &group); err != nil || group.ID != groupA || group.Count != 12345 {
		t.Errorf("got %s, %v", out.String(), err)
	}
}

// The log entries of a group are read page by page, and printed as logs are.
func TestErrorsOccurrences(t *testing.T) {
	api, asked := fakeAPI(t)
	command := errorsOccurrences{Group: groupA, Limit: 5}
	command.APIKey = "key"
	var out strings.Builder
	testenv.Must(t, command.print(t.Context(), api, &out))
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 || !strings.HasSuffix(lines[0], "prod  first") || !strings.HasSuffix(lines[1], "prod  second") {
		t.Errorf("got %q", out.String())
	}
	if got := asked(); got != "key /error-groups/"+groupA+"/occurrences?limit=5\nkey /error-groups/"+groupA+"/occurrences?limit=5&cursor=more" {
		t.Errorf("asked %s", got)
	}
	out.Reset()
	command.Limit, command.JSON = 1, true
	testenv.Must(t, command.print(t.Context(), api, &out))
	if !strings.HasPrefix(out.String(), `{"timestamp"`) || strings.Contains(out.String(), "first") {
		t.Errorf("got %q", out.String())
	}
}

// A group is found by the beginning of its id, if no other begins so.
func TestErrorsShow(t *testing.T) {
	api, _ := fakeAPI(t)
	command := errorsShow{Group: "grp_aaaaaaaa"}
	command.Project = "prj_1"
	var out strings.Builder
	testenv.Must(t, command.print(t.Context(), api, terminal.Screen{Writer: &out}))
	for _, want := range []string{
		"TypeError: no total\ngroup         " + groupA + "\n", "count         12,345\n", "culprit       total (cart.js)\nmerged        grp_b, 3 times: E: b\n",
		"  at total /srv/cart.js:41\n  -  node.emit\n  … 2 more\n", "2026-11-21 09:30:00.000  error  prod         0123  checkout failed\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
	for id, want := range map[string]string{"grp_aaaaaaa": "several groups", "grp_c": "no group of project prj_1", groupB: "404"} {
		command.Group = id
		if err := command.print(t.Context(), api, terminal.Screen{Writer: &out}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// Groups are merged and split, by the beginnings of their ids.
func TestErrorsMerge(t *testing.T) {
	api, asked := fakeAPI(t)
	merge, split := regrouper{Into: "grp_aaaaaaaa", Groups: []string{"grp_aaaaaaab"}}, errorsSplit{Group: groupA, Hash: "0123"}
	merge.Project, merge.APIKey, split.APIKey = "prj_1", "key", "key"
	var out strings.Builder
	testenv.Must(t, merge.regroup(t.Context(), api, terminal.Screen{Writer: &out}, merge.merge))
	testenv.Must(t, merge.regroup(t.Context(), api, terminal.Screen{Writer: &out}, merge.unmerge))
	testenv.Must(t, split.split(t.Context(), api, terminal.Screen{Writer: &out}))
	got := asked()
	for _, sent := range []string{
		"key /error-groups/" + groupB + "/merge\n" + `{"into":"` + groupA + `"}`, "key /error-groups/" + groupA + "/unmerge\n" + `{"groups":["` + groupB + `"]}`, "key /error-groups/" + groupA + "/split\n" + `{"hash":"0123"}`,
	} {
		if !strings.Contains(got, sent) {
			t.Errorf("sent %s, want %s", got, sent)
		}
	}
	if want := groupA + " has 1 others merged into it, and happened 12,345 times: TypeError: no total\n"; out.String() != want+want+want {
		t.Errorf("got %s", out.String())
	}
}

// Groups are resolved, ignored and assigned, by the beginnings of their ids.
func TestErrorsDecide(t *testing.T) {
	api, asked := fakeAPI(t)
	command := decider{Groups: []string{"grp_aaaaaaaa", groupA}, Note: "see #7"}
	command.APIKey, command.Project = "key", "prj_1"
	var out strings.Builder
	testenv.Must(t, command.decide(t.Context(), api, terminal.Screen{Writer: &out}, client.GroupDecision{Status: "resolved", InRelease: "next"}))
	sent := "key /error-groups/" + groupA + "\n" + `{"status":"resolved","in_release":"next","note":"see #7"}`
	if got := asked(); strings.Count(got, sent) != 2 || strings.Count(out.String(), groupA+" is resolved, and happened 12,345 times: TypeError: no total\n") != 2 {
		t.Errorf("sent %s, got\n%s", got, out.String())
	}
	command.Groups = []string{"grp_c", groupA}
	if err := command.decide(t.Context(), api, terminal.Screen{Writer: &out}, client.GroupDecision{Status: "ignored"}); err == nil || strings.Contains(asked(), "ignored") {
		t.Errorf("with an unknown group: %v", err)
	}
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	ignore := errorsIgnore{For: 48 * time.Hour, Count: 10, Per: "hour"}
	if until := ignore.decision(now).Until; !until.At.Equal(now.Add(48*time.Hour)) || until.Count != 10 || until.Per != "hour" || new(errorsIgnore).decision(now).Until != nil {
		t.Errorf("ignored until %+v", until)
	}
}

// Usage has sizes for people and exact bytes for programs.
func TestUsage(t *testing.T) {
	api, asked := fakeAPI(t)
	command := usageCommand{By: "key", Bucket: "day", Limit: 10}
	command.ServiceToken, command.Organization = "token", "org_1"
	var out strings.Builder
	testenv.Must(t, command.print(t.Context(), api, terminal.Screen{Writer: &out}))
	want := "UTC         REQUESTS  ENTRIES  BYTES    KEY\n2026-11-21  3         12,000   1.1 GiB  key_1\n\n" +
		"2026-11-01 to 2026-12-01: 1.1 GiB of 500.0 GiB used, 498.8 GiB left.\n"
	if requests := asked(); out.String() != want || !strings.HasSuffix(requests, "Bearer token /organizations/org_1/usage?bucket=day&by=key&limit=10") {
		t.Errorf("asked %s, got\n%s", requests, out.String())
	}
	out.Reset()
	command.JSON = true
	testenv.Must(t, command.print(t.Context(), api, terminal.Screen{Writer: &out}))
	if !strings.HasPrefix(out.String(), `{"balance":{"granted":536870912000,`) || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"bytes":1288490188}]}`) {
		t.Errorf("got %s", out.String())
	}
}

// A named address goes before a profile, and never gets its key; without
// either, it is what weir run has started.
func TestReach(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	if _, err := (&connection{DataDir: dir}).reach(); err == nil || !strings.Contains(err.Error(), "weir profile add") {
		t.Errorf("got %v", err)
	}
	env := allinone.DevEnv{BaseURL: "https://localhost:8443/v1", APIKey: "demo", CAFile: "/demo.pem", Project: "prj_demo", ServiceToken: "billing"}
	testenv.Must(t, env.Write(filepath.Join(dir, allinone.EnvFile)))
	local := profile.Profile{BaseURL: env.BaseURL, CAFile: env.CAFile, Project: "prj_demo", APIKey: "demo", ServiceToken: "billing"}
	prod := profile.Profile{BaseURL: "https://weir.example.com/v1", APIKey: "prod"}
	check := func(c connection, want profile.Profile) {
		t.Helper()
		c.DataDir = dir
		if got, err := c.reach(); err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	check(connection{}, local)
	foreign := t.TempDir()
	bait := allinone.DevEnv{BaseURL: "https://localhost.example.com/v1", APIKey: "bait"}
	testenv.Must(t, bait.Write(filepath.Join(foreign, allinone.EnvFile)))
	if _, err := (&connection{DataDir: foreign}).reach(); err == nil || !strings.Contains(err.Error(), "no address of this machine") {
		t.Errorf("a file leads to another machine: %v", err)
	}
	testenv.Must(t, profile.Change(func(all *profile.Profiles) error {
		all.Used, all.ByName["prod"] = "prod", prod
		return nil
	}))
	check(connection{}, prod)
	check(connection{BaseURL: "https://other.example.com/v1"}, profile.Profile{BaseURL: "https://other.example.com/v1"})
	testenv.Must(t, (&profileAdd{Name: "local", DataDir: dir}).Run())
	check(connection{Profile: "local"}, local)
	r := reader{connection: connection{Profile: "prod"}, APIKey: "named"}
	if api, _, err := r.open(); err != nil || r.APIKey != "named" || api.Base() != prod.BaseURL {
		t.Errorf("got %v", err)
	}
	if _, err := (&connection{Profile: "prod", BaseURL: "https://other.example.com/v1"}).reach(); err == nil || !strings.Contains(err.Error(), "unset WEIR_BASE_URL") {
		t.Errorf("got %v", err)
	}
}

// A redirect takes no key to another address.
func TestKeysStay(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("asked with the key %q", r.Header.Get("X-Api-Key"))
	}))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	api, err := client.New(server.URL, "", 1)
	testenv.Must(t, err)
	if _, err := client.Read[client.Listing](t.Context(), api, client.ByKey("key"), "/logs", nil); err == nil {
		t.Error("a redirect is an answer")
	}
}

// The key comes from the environment, a file that it names, or standard
// input; there is no flag for it.
func TestProfileAddTakesSecrets(t *testing.T) {
	dir := t.TempDir()
	add := &profileAdd{BaseURL: "https://weir.example.com/v1", CAFile: "ca.pem"}
	file := filepath.Join(dir, "lines")
	testenv.Must(t, os.WriteFile(file, []byte("key\ntoken\n"), 0o600))
	testenv.Must(t, os.WriteFile(file+".token", []byte("token\n"), 0o600))
	lines, err := os.Open(file)
	testenv.Must(t, err)
	defer lines.Close()
	var read profile.Profile
	if err := readSecrets(lines, nil, &read); err != nil || read.APIKey != "key" || read.ServiceToken != "token" {
		t.Errorf("got %v", err)
	}
	if err := readSecrets(lines, nil, &profile.Profile{}); err == nil {
		t.Error("no key is a key")
	}
	t.Setenv("WEIR_API_KEY", "named")
	t.Setenv("WEIR_SERVICE_TOKEN_FILE", file+".token")
	if got, err := add.profile(); err != nil || got.APIKey != "named" || got.ServiceToken != "token" || !filepath.IsAbs(got.CAFile) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, address := range []string{"http://weir.example.com/v1", "https://weir.example.com"} {
		add.BaseURL = address
		if _, err := add.profile(); err == nil || !strings.Contains(err.Error(), "https://weir.example.com/v1") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Profiles are added, listed without their secrets, used and removed.
func TestProfileCommands(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, p := range []struct{ name, key, token string }{{"prod", "hidden1", ""}, {"dev", "", "hidden2"}} {
		t.Setenv("WEIR_API_KEY", p.key)
		t.Setenv("WEIR_SERVICE_TOKEN", p.token)
		testenv.Must(t, (&profileAdd{Name: p.name, BaseURL: "https://" + p.name + ".example.com/v1"}).Run())
	}
	if err := (&profileAdd{Name: "dev", BaseURL: "https://weir.example.com/v1"}).Run(); err == nil || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("got %v", err)
	}
	list := func(asJSON bool) string {
		var out strings.Builder
		testenv.Must(t, (&profileList{JSON: asJSON}).print(terminal.Screen{Writer: &out}))
		return out.String()
	}
	if got := list(false); !strings.Contains(got, "   dev   token           https://dev.example.com/v1\n*  prod  key             https://prod.example.com/v1\n") {
		t.Errorf("got\n%s", got)
	}
	if got := list(true); strings.Count(got, "\n") != 2 || strings.Contains(got, "hidden") || !strings.Contains(got, `{"name":"prod","used":true,"base_url":"https://prod.example.com/v1"`) {
		t.Errorf("got\n%s", got)
	}
	testenv.Must(t, (&profileUse{Name: "dev"}).Run())
	testenv.Must(t, (&profileRemove{Name: "dev"}).Run())
	for _, err := range []error{(&profileUse{Name: "dev"}).Run(), (&profileRemove{Name: "dev"}).Run()} {
		if err == nil || !strings.Contains(err.Error(), "weir profile add dev") {
			t.Errorf("got %v", err)
		}
	}
	if got := list(false); strings.Contains(got, "dev") || strings.Contains(got, "*") {
		t.Errorf("got\n%s", got)
	}
}
