package grouping

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping/trace"
)

// located returns the errors whose traces locate them, by language.
func located() map[trace.Language][]variants {
	all := map[trace.Language][]variants{}
	var g Grouper
	for _, ks := range allVariants {
		for _, k := range ks {
			k.base.StackTrace = strings.Split(strings.Join(k.base.StackTrace, "\n"), "\n")
			if g.Fingerprint(k.base); len(g.trace.Site()) > 0 {
				language := g.trace.Language()
				all[language] = append(all[language], k)
			}
		}
	}
	return all
}

// checkMoves reports each error that a change moves to another group. At
// least this share of all errors must be such that they can be changed.
func checkMoves(t *testing.T, least float64, change func(language trace.Language, e Error) (before, after Error, changed bool)) {
	changed, all := 0, 0
	for language, errors := range located() {
		all += len(errors)
		t.Run(string(language), func(t *testing.T) {
			var g Grouper
			for _, k := range errors {
				before, after, ok := change(language, k.base)
				if !ok {
					continue
				}
				changed++
				was, why := g.Fingerprint(before).Deciding(), g.Fingerprint(before).Explain().Parts
				if f := g.Fingerprint(after); f.Deciding() != was {
					t.Errorf("%s moves\nfrom %q\nto   %q\n%s", k.name, why, f.Explain().Parts, strings.Join(after.StackTrace, "\n"))
				}
			}
		})
	}
	if float64(changed) < least*float64(all) {
		t.Errorf("only %d of %d errors could be changed", changed, all)
	}
}

// site returns the names of the own frames that locate an error, and the
// frames; none where none is own. Endless recursion has no outermost caller.
func site(e Error) (names []string, frames []trace.Frame) {
	var g Grouper
	g.Fingerprint(e)
	if !g.own() || len(g.cycle) > 0 {
		return nil, nil
	}
	for _, i := range g.trace.Site() {
		names, frames = append(names, string(g.trace.Identity(i))), append(frames, g.trace.Frames()[i])
	}
	return names, frames
}

// called adds an outer own caller, as the error's language
// prints it: a copy of one of its outermost with another name.
func called(e Error, name string) (Error, bool) {
	names, frames := site(e)
	for _, f := range slices.Backward(frames[max(0, len(frames)-2):]) {
		for i, line := range slices.Backward(e.StackTrace) {
			if f.Function == "" || !strings.Contains(line, f.Function) {
				continue
			}
			for _, longer := range copied(e, i, renamed(line, f.Function, name)) {
				if adds(longer, names, name) {
					return longer, true
				}
			}
		}
	}
	return e, false
}

// adds reports whether an error has the same frames and, around all
// but the outermost, one more of this name.
func adds(longer Error, names []string, name string) bool {
	after, _ := site(longer)
	at := slices.IndexFunc(after, func(one string) bool { return strings.Contains(one, name) })
	return at >= len(names)-1 && slices.Equal(slices.Delete(after, at, at+1), names)
}

// copied repeats line i with another text. A call may have its place in
// the line before or after, and some runtimes print the outermost first.
func copied(e Error, i int, text string) (all []Error) {
	for _, block := range [][2]int{{i, i + 1}, {i, i + 2}, {i - 1, i + 1}} {
		if block[0] < 0 || block[1] > len(e.StackTrace) {
			continue
		}
		lines := slices.Clone(e.StackTrace[block[0]:block[1]])
		lines[i-block[0]] = text
		for _, at := range []int{block[1], block[0]} {
			all = append(all, Error{Type: e.Type, Message: e.Message, StackTrace: slices.Insert(slices.Clone(e.StackTrace), at, lines...)})
		}
	}
	return all
}

// renamed replaces the last part of a function's name,
// in front of the number of its arguments.
func renamed(line, function, name string) string {
	at := strings.LastIndex(line, function)
	function = arity.ReplaceAllString(function, "")
	last := function[strings.LastIndexAny(function, ".:#> ")+1:]
	at += len(function) - len(last)
	return line[:at] + name + line[at+len(last):]
}

var arity = regexp.MustCompile(`/\d+$`)

// calledBy adds outer callers until so many own frames locate it.
func calledBy(e Error, frames int) (Error, bool) {
	for n := 0; ; n++ {
		if names, _ := site(e); len(names) >= frames {
			return e, true
		}
		longer, ok := called(e, "relay"+suffix(n))
		if !ok {
			return e, false
		}
		e = longer
	}
}

// Callers outside the frames that decide move no error:
// one caller more, two more, or another one.
func TestOuterCallersMoveNothing(t *testing.T) {
	frames := Levels[deciding].Frames
	for what, names := range map[string][2][]string{
		"one more":  {{}, {"deskOne"}},
		"two more":  {{}, {"deskOne", "deskTwo"}},
		"other one": {{"deskOne"}, {"deskTwo"}},
	} {
		t.Run(what, func(t *testing.T) {
			checkMoves(t, 0.85, func(_ trace.Language, e Error) (before, after Error, ok bool) {
				if before, ok = calledBy(e, frames+1); !ok {
					return e, e, false
				}
				after = before
				for _, name := range names[0] {
					before, ok = called(before, name)
				}
				for _, name := range names[1] {
					after, ok = called(after, name)
				}
				return before, after, ok
			})
		})
	}
}

// Lines that were added above move nothing.
func TestMovedLinesMoveNothing(t *testing.T) {
	checkMoves(t, 0.8, func(_ trace.Language, e Error) (before, after Error, changed bool) {
		var g Grouper
		g.Fingerprint(e)
		after = Error{e.Type, e.Message, slices.Clone(e.StackTrace), Learned{}, nil, nil}
		for _, f := range g.trace.Frames() {
			if f.Line == 0 {
				continue
			}
			number := regexp.MustCompile(`([:( ,#@]|line )` + strconv.Itoa(f.Line) + `\b`)
			for i, line := range e.StackTrace {
				if f.File != "" && strings.Contains(line, path.Base(f.File)) {
					after.StackTrace[i] = number.ReplaceAllString(line, "${1}"+strconv.Itoa(f.Line+7))
					changed = true
				}
			}
		}
		return e, after, changed
	})
}

// Another checkout moves nothing.
func TestMovedFoldersMoveNothing(t *testing.T) {
	checkMoves(t, 0.35, func(_ trace.Language, e Error) (before, after Error, changed bool) {
		var g Grouper
		g.Fingerprint(e)
		stack := strings.Join(e.StackTrace, "\n")
		for _, f := range g.trace.Frames() {
			if root := ownRoot.FindString(f.File); f.InApp && root != "" && !changed {
				begins := regexp.MustCompile(`(^|[^\w/.-])` + regexp.QuoteMeta(root))
				stack, changed = begins.ReplaceAllString(stack, "${1}/opt/releases/weir/"), true
			}
		}
		return e, Error{e.Type, e.Message, strings.Split(stack, "\n"), Learned{}, nil, nil}, changed
	})
}

// ownRoot is the folder of an own file that depends on the machine.
var ownRoot = regexp.MustCompile(`^(/(app|srv|src|opt|workspace|home/\w+|Users/\w+|var/www)/|[A-Z]:\\(Users\\\w+|src|app)\\)`)

// Builds change what is named here; it moves nothing.
var builds = []struct {
	language trace.Language
	what     *regexp.Regexp
	become   string
}{
	{trace.Rust, regexp.MustCompile(`::h[0-9a-f]{16}`), "::h0f1e2d3c4b5a6978"},
	{trace.JavaScript, regexp.MustCompile(`-[A-Za-z0-9_]{8}\.js`), "-Dk3_Qw9z.js"},
	{trace.JavaScript, regexp.MustCompile(`\.[0-9a-f]{8,20}\.js`), ".0f1e2d3c4b5a.js"},
	{trace.Java, regexp.MustCompile(`Lambda\$\d+/0x[0-9a-f]+`), "Lambda$$77/0x0000000801234"},
	{trace.Java, regexp.MustCompile(`BySpringCGLIB\$\$[0-9a-f]+`), "BySpringCGLIB$$$$0f1e2d3c"},
	{trace.Go, regexp.MustCompile(`\+0x[0-9a-f]+`), "+0x7f"},
	{trace.Native, regexp.MustCompile(`0x[0-9a-f]{6,}`), "0x7f1e2d3c4b5a"},
	{trace.DotNet, regexp.MustCompile(`__\d+(_\d+)?`), "__9_9"},
}

func TestAnotherBuildMovesNothing(t *testing.T) {
	used := map[string]bool{}
	checkMoves(t, 0.15, func(language trace.Language, e Error) (before, after Error, changed bool) {
		stack := strings.Join(e.StackTrace, "\n")
		for _, b := range builds {
			if b.language == language && b.what.MatchString(stack) {
				stack, changed = b.what.ReplaceAllString(stack, b.become), true
				used[fmt.Sprint(b)] = true
			}
		}
		return e, Error{e.Type, e.Message, strings.Split(stack, "\n"), Learned{}, nil, nil}, changed
	})
	if len(used) != len(builds) {
		t.Errorf("no error has what %d of the builds change", len(builds)-len(used))
	}
}
