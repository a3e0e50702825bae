package ruletext

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/httpapi"
)

// Bounds of the rules of a project.
const (
	MaxNote     = 200 // characters of what is noted about a version
	MaxVersions = 100 // the newest ones, which are kept
)

// A Version is the rules of a project as somebody set them.
type Version struct {
	Number   int64 // from 1; 0: nobody has set any
	Text     string
	Note     string
	By       string    // id of the member or API key
	ByName   string    // of the member, where it was known
	At       time.Time // when they were set, or from when on they hold: the module says which
	Restored int64     // the version whose text it is; 0: none
}

// A Lister lists the versions of a project's rules before a number, the newest
// first, at most limit of them.
type Lister func(before int64, limit int) ([]Version, error)

// Newest returns the rules as they are.
func (list Lister) Newest() (Version, error) {
	found, err := list(math.MaxInt64, 1)
	if err != nil || len(found) == 0 {
		return Version{}, err
	}
	return found[0], nil
}

// Find finds a version. The error is a Problem if it isn't kept.
func (list Lister) Find(number int64) (Version, error) {
	found, err := list(number+1, 1)
	if err == nil && (len(found) == 0 || found[0].Number != number) {
		err = none(strconv.FormatInt(number, 10))
	}
	if err != nil {
		return Version{}, err
	}
	return found[0], nil
}

func none(version string) error {
	return httpapi.NotFound("version of rules, or it is no longer kept:", version)
}

// ParseNumber reads the number of a version. The error is a Problem.
func ParseNumber(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 || number == math.MaxInt64 {
		return 0, none(text)
	}
	return number, nil
}

// A Wish is what somebody wants to be the rules of a project.
type Wish struct {
	Project   string
	Text      string
	Note      string
	IfVersion *int64 // refuses to replace another version; nil: any is replaced
	Restore   int64  // the version whose text it is; 0: none
}

// A Conflict means that the rules were changed meanwhile.
type Conflict struct {
	Wanted int64
	Now    Version
}

func (c Conflict) Error() string {
	return fmt.Sprintf("The rules are at version %d, not %d: somebody changed them meanwhile.", c.Now.Number, c.Wanted)
}

// Next returns the newest version, and the one that follows if the wish is granted:
// its author and time are missing. Both are the same if the newest one has the wanted
// text already: then it may be the same request again, so that IfVersion does
// not count. The rules must not change before the next version is kept. The error
// is a Conflict, a Problem or that of check, which reads a text.
func (w Wish) Next(list Lister, check func(text string) error) (newest, next Version, err error) {
	if newest, err = list.Newest(); err != nil {
		return newest, next, err
	}
	if w.Restore > 0 {
		restored, err := list.Find(w.Restore)
		if err != nil {
			return newest, next, err
		}
		w.Text = restored.Text
	}
	changes := w.Text != newest.Text
	if changes && w.IfVersion != nil && *w.IfVersion != newest.Number {
		return newest, next, Conflict{*w.IfVersion, newest}
	}
	next = Version{Number: newest.Number + 1, Text: w.Text, Note: strings.TrimSpace(w.Note), Restored: w.Restore}
	if err = next.checkNote(); err == nil {
		err = check(next.Text)
	}
	if !changes {
		next = newest
	}
	return newest, next, err
}

// breaksLine reports whether a character is none of a line of text.
func breaksLine(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) || r == utf8.RuneError
}

func (v *Version) checkNote() error {
	if utf8.RuneCountInString(v.Note) <= MaxNote && !strings.ContainsFunc(v.Note, breaksLine) {
		return nil
	}
	return httpapi.Invalid("/note", httpapi.CodeInvalidRequest, "The note must be one line.",
		fmt.Sprintf("Use at most %d characters, without line breaks.", MaxNote))
}

// Changed is what the audit shows of a version that follows another one, before and
// after. Its lines are only in the list of versions if nothing but their order has changed.
func Changed(former, next Version) (before, after map[string]string) {
	return map[string]string{"version": number(former.Number)}, map[string]string{
		"version": number(next.Number), "note": next.Note, "restored_version": number(next.Restored),
		"added": LinesBeyond(next.Text, former.Text), "removed": LinesBeyond(former.Text, next.Text),
	}
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// LinesBeyond are the lines of a text that another one lacks.
func LinesBeyond(text, other string) string {
	have := map[string]bool{} // bounded by the text
	for line := range strings.Lines(other) {
		have[strings.TrimSpace(line)] = true
	}
	var beyond []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !have[line] {
			beyond = append(beyond, line)
		}
	}
	return strings.Join(beyond, "\n")
}
