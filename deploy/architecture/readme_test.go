package architecture

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
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
		testenv.Must(t, err)
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

// Every direct requirement of a module has a row with its reason
// in the module's README.
func TestRequirementsHaveReasons(t *testing.T) {
	for _, room := range append([]string{"shared", "deploy"}, middle...) {
		readme, err := os.ReadFile(filepath.Join("..", "..", room, "README.md"))
		testenv.Must(t, err)
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
	testenv.Must(t, json.Unmarshal(out, &file))
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

var (
	fenced     = regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]*`")
	linked     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInSlugs = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// links returns the targets of a page's links, without quoted code.
func links(page string) (found []string) {
	for _, match := range linked.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		found = append(found, match[1])
	}
	return found
}

// slugs returns the anchors of a page's headings.
func slugs(page string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		found[strings.ReplaceAll(notInSlugs.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")] = true
	}
	return found
}

func pages(t *testing.T) []string {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "-z", "*.md").Output()
	if err != nil {
		t.Fatalf("git cannot list the pages of this clone: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00")
}

// Every link within the repository leads to an existing file and heading.
func TestLinksLeadSomewhere(t *testing.T) {
	followed := 0
	for _, page := range pages(t) {
		file := filepath.Join("../..", page)
		text, err := os.ReadFile(file)
		testenv.Must(t, err)
		for _, link := range links(string(text)) {
			if strings.Contains(link, "://") {
				continue
			}
			followed++
			if complaint := follow(file, link); complaint != "" {
				t.Errorf("%s: %s", page, complaint)
			}
		}
	}
	if followed < 200 {
		t.Errorf("only %d links were followed", followed)
	}
}

// follow returns why a file's link leads nowhere.
func follow(file, link string) string {
	target, anchor, _ := strings.Cut(link, "#")
	if target != "" {
		file = filepath.Join(filepath.Dir(file), target)
	}
	info, err := os.Stat(file)
	if err != nil {
		return link + " is not there"
	}
	if anchor == "" || info.IsDir() {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil || !slugs(string(text))[anchor] {
		return link + " names no heading"
	}
	return ""
}

// The index of the pages for operators links to each of them.
func TestPagesAreIndexed(t *testing.T) {
	const dir = "../docs"
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	testenv.Must(t, err)
	indexed := map[string]bool{"README.md": true}
	for _, link := range links(string(index)) {
		indexed[link] = true
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	testenv.Must(t, err)
	for _, file := range files {
		if !indexed[filepath.Base(file)] {
			t.Errorf("deploy/docs/README.md does not lead to %s", filepath.Base(file))
		}
	}
}

func TestLinks(t *testing.T) {
	page := "# A `b`: c, d\n[x](a.md#b) `[y](z)`\n```sh\n[q](r)\n```\n## E-f\n"
	if found := links(page); len(found) != 1 || found[0] != "a.md#b" {
		t.Errorf("links: %q", found)
	}
	if found := slugs(page); len(found) != 2 || !found["a-b-c-d"] || !found["e-f"] {
		t.Errorf("slugs: %v", found)
	}
}

var (
	section  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	commands = regexp.MustCompile("(?ms)^(?:<!-- ([^\n]+) -->\n)?( *)```sh\n(.*?)^ *```$")
)

// Each command on the pages for operators is run by a test that names
// the page and the section. Otherwise the page says where the same
// commands are, word by word, or why nothing can run them.
func TestCommandsAreRun(t *testing.T) {
	var tests strings.Builder // those that follow pages
	for _, pattern := range []string{"../e2e/*_test.go", "../kubernetes/*_test.go", "../bench/*_test.go", "../disk/*_test.go"} {
		for _, source := range textsOf(t, pattern) {
			tests.WriteString(source)
		}
	}
	blocks, notRun := 0, 0
	for page, text := range textsOf(t, "../docs/*.md") {
		for _, at := range commands.FindAllStringSubmatchIndex(text, -1) {
			blocks++
			below, block := headingOf(text[:at[0]]), text[at[6]:at[7]]
			if at[2] < 0 {
				if !strings.Contains(tests.String(), fmt.Sprintf("%q, %q", page, below)) {
					t.Errorf("%s: no test runs the commands in %q", page, below)
				}
			} else if file, elsewhere := strings.CutPrefix(text[at[2]:at[3]], "the same as in: "); elsewhere {
				standsIn(t, page, file, block)
			} else if notRun++; !strings.HasPrefix(text[at[2]:at[3]], "not run: ") {
				t.Errorf("%s: the commands in %q have an unknown mark", page, below)
			}
		}
	}
	if blocks < 20 || notRun > 2 {
		t.Errorf("%d blocks were looked at, %d of them are not run", blocks, notRun)
	}
}

// textsOf returns the texts of files, by their base names.
func textsOf(t *testing.T, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	testenv.Must(t, err)
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		testenv.Must(t, err)
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

// headingOf returns the section in which a page's text ends.
func headingOf(text string) string {
	found := section.FindAllStringSubmatch(text, -1)
	if found == nil {
		return ""
	}
	return found[len(found)-1][1]
}

// standsIn checks that a file has all lines of a block.
func standsIn(t *testing.T, page, file, block string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Errorf("%s: %v", page, err)
	}
	for line := range strings.Lines(block) {
		if !strings.Contains(string(text), strings.TrimSpace(line)) {
			t.Errorf("%s: %s lacks %q", page, file, line)
		}
	}
}
