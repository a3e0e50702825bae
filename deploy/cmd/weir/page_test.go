package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command on the page about backups is one, with flags that there are.
func TestCommandsOfThePageOnBackups(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "backup.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEIR_BROKERS", "broker:9092")
	found := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "weir" {
			continue
		}
		parser, err := kong.New(&commands{}, kong.Vars{"attacks": "", "ledger_parts": ""})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(words[1:]); err != nil {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
		found[words[1]] = true
	}
	for _, command := range []string{"backup", "restore", "topics", "resume", "doctor"} {
		if !found[command] {
			t.Errorf("no line of the page is weir %s", command)
		}
	}
}
