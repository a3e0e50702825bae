// Package line reads the text of rules: lines of words and expressions, and comments. A
// fault names its line and character. It knows no rule, and does no I/O.
package line

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the rules of a project.
const (
	MaxRules = 50
	MaxText  = 16 << 10 // bytes of all lines
)

// A Fault is what is wrong with the rules, and a way out.
type Fault struct{ Detail, Fix string }

func (f Fault) Error() string { return f.Detail + " " + f.Fix }

// Each calls read with each line of a text that has a rule, up to its first error.
// Lines that begin with # are for people. An error of its own is a Fault.
func Each(text string, read func(l *Line) error) error {
	if len(text) > MaxText {
		return Fault{fmt.Sprintf("The rules have %d bytes.", len(text)), fmt.Sprintf("Use at most %d.", MaxText)}
	}
	rules := 0
	for n, written := range strings.Split(text, "\n") {
		l := &Line{Text: strings.TrimRightFunc(written, unicode.IsSpace), number: n + 1}
		if at := noText(l.Text); at >= 0 {
			return l.Fault(at, "This character is not text.", "Remove it.")
		}
		if l.Blanks(); l.Rest() == "" || l.Text[l.At] == '#' {
			continue
		}
		if rules++; rules > MaxRules {
			return l.Fault(l.At, fmt.Sprintf("There are more than %d rules.", MaxRules), "Join some, or remove some.")
		}
		if err := read(l); err != nil {
			return err
		}
	}
	return nil
}

// noText finds the first byte of a control character, or of what is not UTF-8; -1: there is none.
func noText(text string) int {
	for at, r := range text {
		if r < ' ' && r != '\t' || r == utf8.RuneError && !strings.HasPrefix(text[at:], string(utf8.RuneError)) {
			return at
		}
	}
	return -1
}

// A Line is one that is read.
type Line struct {
	Text   string // without the blanks at its end
	At     int    // the byte where reading goes on
	number int
}

// Number is that of the line, from 1.
func (l *Line) Number() int { return l.number }

// Fault returns the Fault at a byte.
func (l *Line) Fault(at int, detail, fix string) error {
	return l.FaultAt(utf8.RuneCountInString(l.Text[:min(at, len(l.Text))])+1, detail, fix)
}

// FaultAt returns the Fault at a character, from 1.
func (l *Line) FaultAt(character int, detail, fix string) error {
	return Fault{fmt.Sprintf("Line %d, character %d: %s", l.number, character, detail), fix}
}

// Rest is what is left to read.
func (l *Line) Rest() string { return l.Text[l.At:] }

// Blanks reads them, if they come next.
func (l *Line) Blanks() { l.At = len(l.Text) - len(strings.TrimLeftFunc(l.Rest(), unicode.IsSpace)) }

// Word reads up to a blank, or a character of ends.
func (l *Line) Word(ends string) string {
	l.Blanks()
	word := l.Rest()
	if end := strings.IndexFunc(word, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(ends, r) }); end >= 0 {
		word = word[:end]
	}
	l.At += len(word)
	return word
}

// Expression reads /…/, an expression of RE2 of at most so many bytes. It adds its
// steps to those of all expressions, which must not be more than maxSteps.
func (l *Line) Expression(maxBytes int, steps *int, maxSteps int) (*regexp.Regexp, error) {
	from := l.At + 1
	end := from
	for end < len(l.Text) && l.Text[end] != '/' {
		if l.Text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(l.Text) {
		return nil, l.Fault(l.At, "The expression is not closed.", `Add / at its end; \/ is a slash inside.`)
	}
	written := l.Text[from:end]
	l.At = end + 1
	if written == "" || len(written) > maxBytes {
		return nil, l.Fault(from, fmt.Sprintf("The expression has %d bytes.", len(written)), fmt.Sprintf("Use 1 to %d.", maxBytes))
	}
	plain := strings.ReplaceAll(written, `\/`, "/")
	parsed, err := syntax.Parse(plain, syntax.Perl)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return nil, l.Fault(from+max(0, strings.Index(written, wrong.Expr)), fmt.Sprintf("The expression is wrong: %s: %.60q.", wrong.Code, wrong.Expr),
			"Write it as RE2 has it, which knows no look-around and no back reference.")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, l.Fault(from, fmt.Sprintf("The expression is wrong: %v.", err), "Write it as RE2 has it.")
	}
	if *steps += len(program.Inst); *steps > maxSteps {
		return nil, l.Fault(from, fmt.Sprintf("The expressions are too large: with this one they have %d steps.", *steps),
			fmt.Sprintf("Use at most %d in all: a letter is one, and x{20} is twenty.", maxSteps))
	}
	compiled := regexp.MustCompile(plain)
	if compiled.MatchString("") {
		return nil, l.Fault(from, "The expression matches empty text.", "Use + instead of *, or name what must be there.")
	}
	return compiled, nil
}
