//go:build generators

package reference_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/testenv"
)

// Three generators make clients of the document: oapi-codegen in Go, from
// OpenAPI 3.0, a client that compiles; openapi-python-client and OpenAPI
// Generator, from 3.1, functions for sending logs.
func TestGenerators(t *testing.T) {
	dir := t.TempDir()
	present := document(t)
	older, err := openapi.Version30(present)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "openapi.json"), present, 0o600))
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "openapi-3.0.json"), older, 0o600))
	run := func(t *testing.T, program string, arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, arguments...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOWORK=off", "PATH="+filepath.Join(dir, "venv", "bin")+":"+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, out[max(0, len(out)-4000):])
		}
		return string(out)
	}
	t.Run("Go", func(t *testing.T) {
		testenv.Must(t, os.Mkdir(filepath.Join(dir, "goclient"), 0o700))
		run(t, "go", "mod", "init", "example.com/client")
		run(t, "go", "get", "github.com/oapi-codegen/runtime@v1.9.0")
		run(t, "go", "run", "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2",
			"-generate", "types,client", "-package", "goclient", "-o", "goclient/client.go", "openapi-3.0.json")
		run(t, "go", "build", "./goclient")
	})
	t.Run("Python", func(t *testing.T) {
		run(t, "python3", "-m", "venv", "venv")
		run(t, "pip", "install", "--quiet", "openapi-python-client==0.29.1")
		run(t, "openapi-python-client", "generate", "--path", "openapi.json", "--output-path", "python")
		run(t, "python3", "-m", "compileall", "-q", "python")
		has(t, filepath.Join(dir, "python"), "ingest_logs.py")
	})
	t.Run("TypeScript", func(t *testing.T) {
		const generator = "openapi-generator-cli"
		run(t, "mvn", "--quiet", "--batch-mode", "dependency:copy", "-Dartifact=org.openapitools:"+generator+":7.14.0", "-DoutputDirectory=.")
		run(t, "java", "-jar", generator+"-7.14.0.jar", "generate", "-i", "openapi.json", "-g", "typescript-fetch", "-o", "typescript")
		has(t, filepath.Join(dir, "typescript"), "LogsApi.ts")
	})
}

// has checks that a file with something in it is below a folder.
func has(t *testing.T, folder, name string) {
	t.Helper()
	found := false
	testenv.Must(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Name() == name {
			text, err := os.ReadFile(path)
			found = len(bytes.TrimSpace(text)) > 0
			return err
		}
		return err
	}))
	if !found {
		t.Errorf("no %s was generated", name)
	}
}
