package architecture

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every direct requirement of a module has a row with its reason
// in the module's README.
func TestRequirementsHaveReasons(t *testing.T) {
	for _, room := range append([]string{"shared", "deploy"}, middle...) {
		readme, err := os.ReadFile(filepath.Join("..", "..", room, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range requirements(t, filepath.Join("..", "..", room)) {
			if !hasReason(string(readme), path) {
				t.Errorf("%s/README.md has no row that says what %s is for", room, path)
			}
		}
	}
}

// requirements returns the modules that a module requires directly,
// except those of the workspace.
func requirements(t *testing.T, dir string) (direct []string) {
	t.Helper()
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod edit in %s: %v", dir, err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Require {
		if !r.Indirect && !strings.HasPrefix(r.Path, "github.com/weirlog/weir/") {
			direct = append(direct, r.Path)
		}
	}
	return direct
}

var majorVersion = regexp.MustCompile(`/v\d+$`)

// hasReason finds a row of a table whose first cell names the library,
// with or without its host and its major version.
func hasReason(readme, path string) bool {
	path = strings.TrimPrefix(majorVersion.ReplaceAllString(path, ""), "github.com/")
	row := regexp.MustCompile("(?m)^\\|[^|]*[`/]" + regexp.QuoteMeta(path) + "(/v\\d+)?`[^|]*\\|[^|]*\\w[^|]*\\|")
	return row.MatchString(readme)
}

// A library without a row is found.
func TestMissingReasonsAreFound(t *testing.T) {
	readme := "| `go-chi/chi`, `github.com/jackc/pgx/v5` | routes, Postgres |\n| `google/uuid` | |\n"
	for path, want := range map[string]bool{
		"github.com/go-chi/chi/v5": true, "github.com/jackc/pgx/v5": true, "github.com/google/uuid": false, "github.com/go-chi/cors": false,
	} {
		if got := hasReason(readme, path); got != want {
			t.Errorf("hasReason(%s) is %v, want %v", path, got, want)
		}
	}
}
