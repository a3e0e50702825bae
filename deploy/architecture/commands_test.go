package architecture

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	section  = regexp.MustCompile(`(?m)^##+ +(.*)$`)
	commands = regexp.MustCompile("(?m)^(?:<!-- commands: (\\S+) -->\n)?( *)```sh$")
)

// Commands on the pages for operators are run by a test of deploy/e2e, which
// names the page and the section, or the page names what looks at them.
func TestCommandsAreRun(t *testing.T) {
	tests, blocks := testsOfPages(t), 0
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range commands.FindAllStringSubmatchIndex(string(text), -1) {
			blocks++
			page, below := filepath.Base(file), headingOf(string(text[:at[0]]))
			if at[2] >= 0 {
				looksThere(t, page, string(text[at[2]:at[3]]))
			} else if !strings.Contains(tests, fmt.Sprintf("%q, %q", page, below)) {
				t.Errorf("%s: no test of deploy/e2e runs the commands in %q", page, below)
			}
		}
	}
	if blocks < 20 {
		t.Errorf("only %d blocks were looked at", blocks)
	}
}

// testsOfPages is the source of the tests that follow pages.
func testsOfPages(t *testing.T) (source string) {
	t.Helper()
	files, err := filepath.Glob("../e2e/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source += string(text)
	}
	return source
}

// headingOf is the section that a page is in where a text of it ends.
func headingOf(text string) string {
	found := section.FindAllStringSubmatch(text, -1)
	if found == nil {
		return ""
	}
	return found[len(found)-1][1]
}

// looksThere wants the file to be there that a page names.
func looksThere(t *testing.T, page, file string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
		t.Errorf("%s: %v", page, err)
	}
}
