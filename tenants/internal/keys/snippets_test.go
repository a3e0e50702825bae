package keys

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/ui"
)

func stepsOf(t *testing.T, origin, caFile string) map[string]ui.Variant {
	t.Helper()
	steps := map[string]ui.Variant{}
	for _, step := range firstSteps(slices.Concat(snippets, ofPages), origin, caFile, "weir_"+strings.Repeat("ab", 24), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)).Of {
		steps[step.Code.ID] = step
	}
	return steps
}

// The programs that a new key is shown with send their entry, by the
// certificate authority that they name.
func TestSnippetsSend(t *testing.T) {
	came := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- r.Method + r.URL.Path + " " + r.Header.Get("X-Api-Key") + " " + r.Header.Get("Content-Type") + " " + string(body)
		_, _ = io.WriteString(w, `{"message":"Accepted 1 entry"}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	caFile := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	steps, script := stepsOf(t, server.URL, caFile), strings.NewReplacer(`<script type="module">`, "", "</script>", "")
	for _, program := range []struct {
		id, file string
		run      []string
		env      string
	}{
		{"python", "hello.py", []string{"python3"}, ""},
		{"node", "hello.mjs", []string{"node"}, "NODE_EXTRA_CA_CERTS=" + caFile},
		{"page", "page.mjs", []string{"node"}, "NODE_EXTRA_CA_CERTS=" + caFile},
		{"go", "hello.go", []string{"go", "run"}, "SSL_CERT_FILE=" + caFile},
	} {
		file := filepath.Join(dir, program.file)
		if err := os.WriteFile(file, []byte(script.Replace(steps[program.id].Code.Text)), 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), program.run[0], append(program.run[1:], file)...)
		command.Env = append(os.Environ(), program.env, "SSL_CERT_DIR=")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", program.id, err, out)
			continue
		}
		got := <-came
		if !strings.HasPrefix(got, "POST/v1/logs weir_"+strings.Repeat("ab", 24)+" application/json {\"logs\": [{\"timestamp\"") &&
			!strings.HasPrefix(got, "POST/v1/logs weir_"+strings.Repeat("ab", 24)+" application/json {\"logs\":[{\"timestamp\"") {
			t.Errorf("%s sent %s", program.id, got)
		}
	}
}

// Settings name the address, the key, and the authority where one is needed.
func TestSnippetsAreFilled(t *testing.T) {
	for _, caFile := range []string{"", "/srv/ca.pem"} {
		for id, step := range stepsOf(t, "https://weir.example", caFile) {
			text := step.Code.Text
			if !strings.Contains(text, "weir.example") || !strings.Contains(text, "weir_abab") || strings.Contains(text, "/srv/ca.pem") != (caFile != "" && id != "page") || strings.Contains(text, "{{") {
				t.Errorf("%s: %s", id, text)
			}
		}
	}
	if text := stepsOf(t, "https://weir.example:8443", "")["fluentbit"].Code.Text; !strings.Contains(text, "Port      8443") {
		t.Errorf("the port is missing: %s", text)
	}
}
