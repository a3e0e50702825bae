package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	indexed := map[string]bool{"README.md": true}
	for _, link := range links(string(index)) {
		indexed[link] = true
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
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
