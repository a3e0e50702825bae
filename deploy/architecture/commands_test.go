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
	if blocks < 20 || notRun > 1 {
		t.Errorf("%d blocks were looked at, %d of them are not run", blocks, notRun)
	}
}

// textsOf returns the texts of files, by their base names.
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
