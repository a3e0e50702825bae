package trace

import "strings"

// Programs log, wrap and make errors through helpers of their
// own. As with library frames, their callers identify an error.

// SkipHelpers drops the innermost frames of the site
// that are helpers, unless nothing else is left.
func (t *Trace) SkipHelpers() {
	for n, i := range t.site {
		if !t.frames[i].InApp {
			return
		}
		if !isHelper(&t.frames[i]) {
			t.site, t.repeated = t.site[n:], t.repeated[n:]
			return
		}
	}
}

// isHelper reports whether a function exists to log, wrap or make
// errors, by its own name or that of its file, class or package.
func isHelper(f *Frame) bool {
	name := afterLast(callBreaks, f.Function)
	return isHelperName(name) || isHelperHome(f.Module) || isHelperHome(withoutExtension(baseName(f.File)))
}

// isHelperName examines the first and the last word, as
// in "wrapError", "log_failure", "Fatalf" and "AppError".
func isHelperName(name string) bool {
	first, last := wordEdges(name)
	for _, verb := range helperVerbs {
		if strings.EqualFold(first, verb) || len(first) == len(verb)+1 && first[len(verb)] == 'f' && strings.EqualFold(first[:len(verb)], verb) {
			return true
		}
	}
	return isOneOf(last, errorNouns)
}

// isHelperHome examines the last part of a class or package.
func isHelperHome(home string) bool { return isOneOf(afterLast(homeBreaks, home), helperHomes) }

var (
	homeBreaks  = bytesOf(`./\:`)
	helperVerbs = strings.Fields("log wrap fatal throw raise panic")
	errorNouns  = strings.Fields("error exception")
	helperHomes = strings.Fields("err errs error errors exceptions log logger logging")
)

func isOneOf(s string, names []string) bool {
	for _, one := range names {
		if strings.EqualFold(s, one) {
			return true
		}
	}
	return false
}

// wordEdges are a name's first and last word.
func wordEdges(name string) (first, last string) {
	begin := len(name)
	for begin > 1 && !beginsWord(name, begin-1) {
		begin--
	}
	end := min(1, len(name))
	for end < len(name) && !beginsWord(name, end) {
		end++
	}
	return strings.TrimRight(name[:end], "_-"), name[max(0, begin-1):]
}

// beginsWord reports whether a word begins at i > 0.
func beginsWord(name string, i int) bool {
	before := name[i-1]
	return before == '_' || before == '-' || isUpper(name[i]) && !isUpper(before)
}

// withoutExtension is a file name up to its first dot.
func withoutExtension(name string) string {
	stem, _, _ := strings.Cut(name, ".")
	return stem
}
