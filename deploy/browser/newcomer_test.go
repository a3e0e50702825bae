//go:build browser

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

// A newcomer makes a key in the console, copies the program of a language, runs
// it, and sees the first entry turn the page green. The output says how long
// the machine took for that.
func TestNewcomer(t *testing.T) {
	in := newInstallation(t)
	owner := openTab(t, startChromium(t, in.origin), in.origin)
	owner.found(in.ownerLink(t))
	owner.createProject("Checkout")
	for _, language := range []struct {
		name, file string
		run        []string
		env        string
	}{
		{"curl", "hello.sh", []string{"sh"}, ""},
		{"Python", "hello.py", []string{"python3"}, ""},
		{"Node", "hello.mjs", []string{"node"}, "NODE_EXTRA_CA_CERTS="},
		{"Go", "hello.go", []string{"go", "run"}, "SSL_CERT_FILE="},
	} {
		begun := time.Now()
		owner.open("/console/settings/projects")
		owner.createKey(language.name, "Staging")
		program := owner.code(language.name)
		made := time.Since(begun)
		file := filepath.Join(t.TempDir(), language.file)
		testenv.Must(t, os.WriteFile(file, []byte(program), 0o600))
		run := exec.CommandContext(t.Context(), language.run[0], append(language.run[1:], file)...)
		run.Env = append(os.Environ(), "SSL_CERT_DIR=")
		if language.env != "" { // as the program's first line says
			run.Env = append(run.Env, language.env+in.app.Env().CAFile)
		}
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s\n%s", language.name, err, out, program)
		}
		owner.await(`document.querySelector(".awaited[data-state=done]")`)
		t.Logf("%s: %d lines; %s for the key and its program, %s until the first entry is on the page", language.name,
			strings.Count(strings.TrimSpace(program), "\n")+1, made.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	}
	owner.blameless("the newcomer's pages")
}

// code is the program of a language on the page of a new key.
func (b *tab) code(language string) string {
	b.t.Helper()
	text := ask[string](b, fmt.Sprintf(`[...document.querySelectorAll("pre, textarea")].map((e) => e.value ?? e.textContent).find((text) => text.includes("Hello from %s")) ?? ""`, language))
	if text == "" {
		b.t.Fatalf("there is no program in %s: %s", language, b.describe())
	}
	return text
}
