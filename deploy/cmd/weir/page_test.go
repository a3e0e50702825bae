package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command on these pages exists, with its flags. Their order is
// checked: what is restored or upgraded is migrated before services start.
func TestCommandsOfPages(t *testing.T) {
	t.Setenv("WEIR_BROKERS", "broker:9092")
	for name, want := range map[string]string{
		"backup.md":  "backup doctor restore restore migrate topics resume resume doctor resume resume",
		"upgrade.md": "backup doctor topics migrate",
		"scale.md":   "backup restore migrate doctor",
		"secure.md":  "acls acls acls acls topics migrate",
	} {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(words[1:]); err != nil {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
		found = append(found, words[1])
	}
	return found
}
