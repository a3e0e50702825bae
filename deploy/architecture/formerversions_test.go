package architecture

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// longestFormer is for how long a former version of the fingerprints is kept:
// the 30 days of decision 26, and time for the releases around them.
const longestFormer = 90 * 24 * time.Hour

var replacedOn = regexp.MustCompile(`\breplaced on (\d{4}-\d{2}-\d{2})\b`)

// overdue finds what is wrong with the doc.go of a former version.
func overdue(doc string, now time.Time) (fault string) {
	on := replacedOn.FindStringSubmatch(strings.ReplaceAll(doc, "\n// ", " "))
	if on == nil {
		return "its doc.go does not say that it was replaced on a day, such as 2026-11-23"
	}
	day, err := time.Parse(time.DateOnly, on[1])
	if err != nil {
		return err.Error()
	}
	if last := day.Add(longestFormer); now.After(last) {
		return fmt.Sprintf("it was replaced on %s: delete it, as no installation has needed it since %s", on[1], last.Format(time.DateOnly))
	}
	return ""
}

// Former versions are deleted by date and not by memory. It is that of the
// commit: what passes today passes always.
func TestFormerVersionsAreDeleted(t *testing.T) {
	versions, err := filepath.Glob("../../grouping/internal/former/v*/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	now := committed(t)
	for _, path := range versions {
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if fault := overdue(string(doc), now); fault != "" {
			t.Errorf("%s: %s", filepath.Dir(path), fault)
		}
	}
}

// committed is when the newest commit was made.
func committed(t *testing.T) time.Time {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "git", "log", "-1", "--format=%cI").Output()
	if err != nil {
		t.Fatalf("git cannot read the newest commit of this clone: %v", err)
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestOverdue(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for doc, want := range map[string]string{
		"// Package v8 is kept, replaced\n// on 2026-11-23.": "",
		"// Package v7 was replaced on 2026-08-01.":          "delete it",
		"// Package v6 says nothing.":                        "does not say",
		"// Package v5 was replaced on 2026-13-01.":          "month out of range",
	} {
		if got := overdue(doc, now); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("of %q: %q, want %q", doc, got, want)
		}
	}
}
