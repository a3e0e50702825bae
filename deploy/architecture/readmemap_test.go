package architecture

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	firstTable = regexp.MustCompile(`(?m)^\|[^\n]*\|\n\|[-|]+\|\n((?:\|[^\n]*\n)+)`)
	quoted     = regexp.MustCompile("`([^`]+)`")
)

// mapped returns the paths in the first column of a README's first table.
func mapped(readme string) (paths []string) {
	table := firstTable.FindStringSubmatch(readme)
	if table == nil {
		return nil
	}
	for row := range strings.Lines(table[1]) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, name := range quoted.FindAllStringSubmatch(first, -1) {
			paths = append(paths, strings.TrimSuffix(name[1], "/"))
		}
	}
	return paths
}

// isMapped reports whether a folder, one of its parents, or one of its
// files is named.
func isMapped(folder string, names []string) bool {
	for _, name := range names {
		if folder == name || strings.HasPrefix(folder, name+"/") || strings.HasSuffix(name, ".go") && path.Dir(name) == folder {
			return true
		}
	}
	return false
}

// The map of each module's README names every package, and nothing
// that is gone.
func TestMapsAreTrue(t *testing.T) {
	for _, room := range append([]string{"shared", "deploy"}, middle...) {
		dir := filepath.Join("..", "..", room)
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		names := mapped(string(readme))
		for _, name := range names {
			if found, err := filepath.Glob(filepath.Join(dir, name)); len(found) == 0 || err != nil {
				t.Errorf("%s/README.md maps %s, which is not there", room, name)
			}
		}
		for _, p := range list(t, room) {
			folder := strings.TrimPrefix(p.ImportPath, prefix+room+"/")
			if folder != p.ImportPath && !isForTests(p.ImportPath) && !isMapped(folder, names) {
				t.Errorf("%s/README.md does not map %s", room, folder)
			}
		}
	}
}

func TestMapped(t *testing.T) {
	names := mapped("# T\n\n| Where | What |\n|---|---|\n| `a`, `b/c` | `d` |\n| [`e/`](e/README.md) | |\n\n| Module | |\n|---|---|\n| `f` | |\n")
	if got := strings.Join(names, " "); got != "a b/c e" {
		t.Errorf("mapped: %q", got)
	}
	for folder, want := range map[string]bool{"a": true, "a/x": true, "ab": false, "b": false, "b/c": true} {
		if isMapped(folder, names) != want {
			t.Errorf("%s: mapped %t", folder, !want)
		}
	}
}
