package allinone

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// A demo organization is dropped only where the control plane says that
// it does not have it: a token that is not in force yet proves nothing,
// nor does a failure. What is dropped is kept in a file.
func TestTheDemoIsDroppedOnlyForCertain(t *testing.T) {
	for name, c := range map[string]struct {
		answers []int
		dropped bool
	}{
		"known":                           {[]int{200}, false},
		"known, its operator later":       {[]int{401, 401, 200}, false},
		"unknown":                         {[]int{404}, true},
		"unknown, its operator later":     {[]int{401, 404}, true},
		"known once the database is up":   {[]int{500, 429, 200}, false},
		"unknown once the server answers": {[]int{500, 404}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/organizations/org_1" || r.Header.Get("Authorization") != "Bearer weir_st_operator" {
					t.Errorf("asked %s as %q", r.URL, r.Header.Get("Authorization"))
				}
				w.WriteHeader(c.answers[min(asked, len(c.answers)-1)])
				asked++
				_, _ = w.Write([]byte(`{}`))
			}))
			t.Cleanup(server.Close)
			dir := t.TempDir()
			ca := filepath.Join(dir, "ca.pem")
			block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
			testenv.Must(t, os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
			before := DevEnv{OperatorToken: "weir_st_operator", Organization: "org_1", ServiceToken: "weir_st_1", APIKey: "weir_1"}
			env := before
			d := &demo{&env, filepath.Join(dir, EnvFile), testenv.Logger(t)}
			testenv.Must(t, env.Write(d.file))
			api, err := client.New(server.URL+"/v1", ca, 1)
			testenv.Must(t, err)
			defer api.Close()
			testenv.Must(t, d.dropForeign(t.Context(), api))
			if dropped := env != before; dropped != c.dropped || asked != len(c.answers) {
				t.Errorf("after %d answers: dropped %t, want %t", asked, dropped, c.dropped)
			}
			kept, err := filepath.Glob(d.file + ".2*")
			if err != nil || (len(kept) == 1) != c.dropped {
				t.Fatalf("kept %q, %v", kept, err)
			}
			for _, file := range kept {
				if env, err := ReadDevEnv(file); err != nil || env != before {
					t.Errorf("kept %+v, %v", env, err)
				}
			}
		})
	}
}

// A written file is read back by us and by a shell, with any text in
// its path; nobody else may read it.
func TestDevEnvRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "it's a dir.env")
	env := DevEnv{BaseURL: "https://localhost:8443/v1", CAFile: "/home/o'neil/$x/ca.pem", APIKey: "weir_1", ConsolePassword: `a"b\c`}
	testenv.Must(t, env.Write(path))
	if read, err := ReadDevEnv(path); err != nil || read != env {
		t.Errorf("read %+v, %v, want %+v", read, err, env)
	}
	shell := exec.Command("sh", "-c", `. "$1" && printf '%s|%s|%s' "$WEIR_CA_FILE" "$WEIR_API_KEY" "$WEIR_CONSOLE_PASSWORD"`, "sh", path)
	if out, err := shell.CombinedOutput(); err != nil || string(out) != env.CAFile+"|"+env.APIKey+"|"+env.ConsolePassword {
		t.Errorf("a shell reads %q, %v", out, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := env.Write(path); err != nil {
		t.Error(err)
	}
	if same, err := os.Stat(path); err != nil || !os.SameFile(info, same) {
		t.Errorf("equal values were written again, to a disk that may be full: %v", err)
	}
}

// A missing file is a first start; a damaged one is an error with the way out.
func TestDevEnvMissingOrDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), EnvFile)
	if read, err := ReadDevEnv(path); err != nil || read != (DevEnv{}) {
		t.Errorf("missing: %+v, %v", read, err)
	}
	for _, damaged := range []string{"", "# How to reach it\n", "WEIR_API_KEY=weir_1\n", "\x00\x00"} {
		testenv.Must(t, os.WriteFile(path, []byte(damaged), 0o600))
		if _, err := ReadDevEnv(path); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("damaged to %q: %v", damaged, err)
		}
	}
}

// One process at a time holds a data directory.
func TestDataDirIsHeldOnce(t *testing.T) {
	dir, err := openDataDir(t.TempDir())
	testenv.Must(t, err)
	if _, err := openDataDir(dir.path); err == nil || !strings.Contains(err.Error(), "another weir runs on") {
		t.Errorf("second: %v", err)
	}
	testenv.Must(t, dir.close())
	again, err := openDataDir(dir.path)
	testenv.Must(t, err)
	_ = again.close()
}

// A kept file has the old credentials, for its owner only; the newest
// five stay, and no other file goes.
func TestKeptDevEnv(t *testing.T) {
	path := filepath.Join(t.TempDir(), "[it's]", EnvFile)
	testenv.Must(t, os.Mkdir(filepath.Dir(path), 0o700))
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var kept []string
	for i := range maxKept + 2 {
		env := DevEnv{APIKey: fmt.Sprint("weir_", i)}
		testenv.Must(t, env.Write(path))
		as, err := KeepDevEnv(path, at.Add(time.Duration(i)*time.Second))
		testenv.Must(t, err)
		kept = append(kept, as)
	}
	for i, as := range kept {
		env, err := ReadDevEnv(as)
		want := DevEnv{APIKey: fmt.Sprint("weir_", i)}
		if i < 2 {
			want = DevEnv{} // as without a file
		}
		if err != nil || env != want {
			t.Errorf("%s: %+v, %v, want %+v", as, env, err, want)
		}
	}
	if info, err := os.Stat(kept[len(kept)-1]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// writes collects writes, each separately.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// A reader that waits for the line that Weir is ready finds the
// commands too: all or nothing is written.
func TestHintsAreWrittenAtOnce(t *testing.T) {
	for _, env := range []DevEnv{{}, {APIKey: "weir_1", ConsolePassword: "secret"}} {
		var got writes
		(&App{dir: &dataDir{path: "/data"}, env: env}).WriteHints(&got, time.Second)
		if len(got) != 1 || !strings.HasPrefix(got[0], "Weir is ready after 1.0 s") || !strings.Contains(got[0], "curl ") {
			t.Errorf("written %q", []string(got))
		}
	}
}
