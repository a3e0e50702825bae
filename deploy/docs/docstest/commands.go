package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// A block of commands in a page, perhaps indented.
var commands = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// Blocks returns the blocks of commands in a text.
func Blocks(text string) (found []string) {
	for _, block := range commands.FindAllStringSubmatch(text, -1) {
		found = append(found, block[1])
	}
	return found
}

// BlocksOf returns those in a section of a page of deploy/docs, at
// least one. It is for tests of packages in deploy.
func BlocksOf(t testing.TB, page, section string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../docs", page))
	testenv.Must(t, err)
	_, after, _ := strings.Cut(string(text), "# "+section+"\n")
	within, _, _ := strings.Cut(after, "\n##")
	found := Blocks(within)
	if len(found) == 0 {
		t.Fatalf("%s has no commands in %q", page, section)
	}
	return found
}
