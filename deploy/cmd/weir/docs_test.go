package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/shared/testenv"
)

// The generated pages are up to date.
func TestPagesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	pages, err := pages(root)
	testenv.Must(t, err)
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, "deploy", "docs", name))
		if err != nil || string(got) != string(want) {
			t.Errorf("deploy/docs/%s is not what the source makes of it: make docs (%v)", name, err)
		}
	}
}

var (
	variable = regexp.MustCompile(`\b(?:WEIR|OTEL)_[A-Z0-9_]*[A-Z0-9]\b`)
	// The commands of weir themselves look up addresses of modules;
	// WEIR_VERSION belongs to deploy/compose.
	elsewhere = regexp.MustCompile(`^WEIR_((INGEST|LEDGER|GROUPING|TENANTS)_((MIGRATE|REPLICA)_)?DATABASE_URL|VERSION)$`)
)

// The settings on pages for operators exist.
func TestPagesNameSettings(t *testing.T) {
	root := filepath.Join("..", "..", "docs")
	known, named := variablesOf(t, filepath.Join(root, "settings.md")), 0
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	testenv.Must(t, err)
	runbooks, err := filepath.Glob(filepath.Join(root, "runbooks", "*.md"))
	testenv.Must(t, err)
	for _, page := range append(pages, runbooks...) {
		for name := range variablesOf(t, page) {
			named++
			of := strings.TrimSuffix(name, process.FileSuffix)
			if !known[name] && !known[of] && !elsewhere.MatchString(of) {
				t.Errorf("%s names %s, which is no setting", page, name)
			}
		}
	}
	if named < len(known) {
		t.Errorf("only %d names were looked at", named)
	}
}

func variablesOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	testenv.Must(t, err)
	names := map[string]bool{}
	for _, name := range variable.FindAllString(string(text), -1) {
		names[name] = true
	}
	return names
}

// Every command on these pages exists, with its flags. Their order is
// checked: what is restored or upgraded is migrated before services start.
func TestCommandsOfPages(t *testing.T) {
	t.Setenv("WEIR_BROKERS", "broker:9092")
	for name, want := range map[string]string{
		"backup.md":  "backup doctor recover topics resume resume doctor resume resume resume resume resume resume backup restore restore migrate",
		"upgrade.md": "backup doctor topics migrate",
		"scale.md":   "backup restore migrate doctor",
		"secure.md":  "acls acls acls acls topics migrate",
	} {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		testenv.Must(t, err)
		if found := commandsOf(t, string(page)); !slices.Equal(found, strings.Fields(want)) {
			t.Errorf("%s has %v, want %s", name, found, want)
		}
	}
}

// commandsOf returns the commands of weir on a page, and parses their lines.
func commandsOf(t *testing.T, page string) (found []string) {
	t.Helper()
	for line := range strings.Lines(page) {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(strings.ReplaceAll(line, "'", ""))
		if len(words) < 2 || words[0] != "weir" {
			continue
		}
		parser, err := kong.New(&commands{})
		testenv.Must(t, err)
		if _, err := parser.Parse(words[1:]); err != nil {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
		found = append(found, words[1])
	}
	return found
}
