package backup

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// An address's secrets stay out of the arguments, and its options stay
// beside ours, with spaces in libpq's form.
func TestLogin(t *testing.T) {
	folder := t.TempDir()
	program, seen := filepath.Join(folder, "pg_dump"), filepath.Join(folder, "seen")
	script := "#!/bin/sh\necho \"$@\" > " + seen + "\nenv >> " + seen + "\ncat \"$PGSERVICEFILE\" >> " + seen + "\nls -l \"$PGSERVICEFILE\" >> " + seen + "\n"
	testenv.Must(t, os.WriteFile(program, []byte(script), 0o700))
	const address = "postgres://weir:first@host/weir?options=-c%20lock_timeout%3D9s&password=second&pool_max_conns=3&sslkey=%2Fa%20b&sslpassword=third"
	testenv.Must(t, run(t.Context(), program, httpapi.Secret(address), "--jobs=2"))
	raw, err := os.ReadFile(seen)
	testenv.Must(t, err)
	lines := strings.Split(string(raw), "\n")
	const want = "--jobs=2 --no-password --dbname=postgres://weir@host/weir?options=-c%20lock_timeout%3D9s%20-c%20weir.organization%3D%2A&sslkey=%2Fa%20b"
	if lines[0] != want {
		t.Errorf("arguments %q, want %q", lines[0], want)
	}
	for _, line := range []string{"PGPASSWORD=second", "[weir]", "sslpassword=third", "PGSERVICE=weir"} {
		if !slices.Contains(lines, line) {
			t.Errorf("it was not given %q", line)
		}
	}
	if !strings.Contains(string(raw), "-rw------- ") {
		t.Error("others may read the file with a secret")
	}
	for _, line := range lines {
		if file, ok := strings.CutPrefix(line, "PGSERVICEFILE="); ok {
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s is still there", file)
			}
		}
	}
}

// Options of the environment stay if the address has none, and ours
// replace no service.
func TestLoginWithEnvironment(t *testing.T) {
	t.Setenv("PGOPTIONS", "-c lock_timeout=9s")
	l, err := loginOf("postgres://host/weir")
	testenv.Must(t, err)
	address, err := url.Parse(l.address)
	testenv.Must(t, err)
	if options := address.Query().Get("options"); options != "-c lock_timeout=9s -c weir.organization=*" {
		t.Errorf("options %q", options)
	}
	t.Setenv("PGSERVICE", "other")
	if _, err := loginOf("postgres://host/weir?sslpassword=third"); err == nil || strings.Contains(err.Error(), "third") {
		t.Errorf("a service beside sslpassword: %v", err)
	}
}
