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
	var tests strings.Builder // that follow pages
	for _, source := range textsOf(t, "../e2e/*_test.go") {
		tests.WriteString(source)
	}
	blocks := 0
	for page, text := range textsOf(t, "../docs/*.md") {
		for _, at := range commands.FindAllStringSubmatchIndex(text, -1) {
			blocks++
			below := headingOf(text[:at[0]])
			if at[2] >= 0 {
				looksThere(t, page, text[at[2]:at[3]])
			} else if !strings.Contains(tests.String(), fmt.Sprintf("%q, %q", page, below)) {
				t.Errorf("%s: no test of deploy/e2e runs the commands in %q", page, below)
			}
		}
	}
	if blocks < 20 {
		t.Errorf("only %d blocks were looked at", blocks)
	}
}

// textsOf are the texts of files, by their base names.
func textsOf(t *testing.T, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
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
