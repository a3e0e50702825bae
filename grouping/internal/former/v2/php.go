package v2

import (
	"strings"

	"github.com/weirlog/weir/grouping"
)

// PHP: "#0 /a/b.php(12): Ns\Cls->fn(Array)", "#1 [internal function]:
// {closure}()", "#2 {main}". The place is where the function was called.

func phpFrame(line string) (grouping.Frame, bool) {
	s := line[leadingSpace(line):]
	if len(s) < 4 || s[0] != '#' || !isDigit(s[1]) {
		return grouping.Frame{}, false
	}
	space := strings.IndexByte(s, ' ')
	if space < 2 || !allDigits(s[1:space]) {
		return grouping.Frame{}, false
	}
	s = strings.TrimSpace(s[space:])
	if s == "{main}" {
		return grouping.Frame{Function: s}, true
	}
	place, call, ok := strings.Cut(s, ": ")
	if !ok || place == "" || call == "" {
		return grouping.Frame{}, false
	}
	f := grouping.Frame{File: place}
	switch {
	case strings.HasSuffix(place, ")"):
		open := strings.LastIndexByte(place, '(')
		if open < 1 || !allDigits(place[open+1:len(place)-1]) {
			return grouping.Frame{}, false
		}
		f.File, f.Line = place[:open], number(place[open+1:len(place)-1])
	case place != "[internal function]":
		return grouping.Frame{}, false
	}
	f.Module, f.Function = phpCall(call)
	return f, f.Function != ""
}

// phpCall splits "Ns\Cls->fn(args)" into class and function.
func phpCall(s string) (class, function string) {
	name := s
	if closure := strings.Index(s, "{closure"); closure >= 0 {
		if end := strings.IndexByte(s[closure:], '}'); end > 0 {
			name = s[:closure+end+1]
			return "", name
		}
	}
	if open := strings.IndexByte(name, '('); open >= 0 {
		name = name[:open]
	}
	for _, arrow := range [...]string{"->", "::"} {
		if i := strings.LastIndex(name, arrow); i > 0 {
			return name[:i], name[i+2:]
		}
	}
	return "", name
}

func phpMark(line string) mark {
	s := strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(s, "Next "); ok {
		return named(cause, rest)
	}
	if i := strings.Index(s, "Uncaught "); i >= 0 {
		s = s[i+len("Uncaught "):]
	}
	return classHeader(s)
}

func phpInApp(f *grouping.Frame) bool {
	if f.Function == "{main}" {
		return false
	}
	if f.Module != "" {
		return !phpLibraries.hold(f.Module, '\\')
	}
	return !strings.Contains(f.File, "/vendor/") && f.File != "[internal function]"
}

// phpIdentity is class and function. A closure is named by the function that
// holds it where PHP says so, else by its namespace.
func phpIdentity(dst []byte, f *grouping.Frame) []byte {
	if f.Function == "{main}" {
		return dst
	}
	class, _, _ := strings.Cut(f.Module, "@anonymous")
	if class != "" {
		dst = append(append(dst, class...), ':')
	}
	name, inside, closure := strings.Cut(f.Function, "{closure")
	if !closure {
		return append(dst, f.Function...)
	}
	inside = strings.Trim(inside, ":}")
	if rest, _, ok := cutNumber(inside); ok {
		inside = rest
	}
	if strings.IndexByte(inside, '/') >= 0 && !strings.Contains(inside, "::") {
		inside = baseName(inside)
	}
	dst = append(append(dst, name...), "{closure}"...)
	return append(dst, strings.TrimSuffix(inside, "()")...)
}
