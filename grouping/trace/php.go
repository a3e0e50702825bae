package trace

import "strings"

// PHP: "#0 /a/b.php(12): Ns\Cls->fn(Array)", "#1 [internal function]:
// {closure}()", "#2 {main}". The place is where the function was called.

func phpFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if len(s) < 4 || s[0] != '#' || !isDigit(s[1]) {
		return consoleFrame(s)
	}
	space := strings.IndexByte(s, ' ')
	if space < 2 || !allDigits(s[1:space]) {
		return Frame{}, false
	}
	s = strings.TrimSpace(s[space:])
	if s == "{main}" {
		return Frame{Function: s}, true
	}
	place, call, ok := strings.Cut(s, ": ")
	if !ok || place == "" || call == "" {
		return Frame{}, false
	}
	f := Frame{File: place}
	switch {
	case strings.HasSuffix(place, ")"):
		open := strings.LastIndexByte(place, '(')
		if open < 1 || !allDigits(place[open+1:len(place)-1]) {
			return Frame{}, false
		}
		f.File, f.Line = place[:open], number(place[open+1:len(place)-1])
	case place != "[internal function]":
		return Frame{}, false
	}
	f.Module, f.Function = phpCall(unescaped(call))
	return f, f.Function != ""
}

// xdebugFrame reads "PHP   3. App\Cart->total($id = 7) /app/web.php:12"; the
// innermost call is printed last.
func xdebugFrame(line string) (Frame, bool) {
	s := strings.TrimLeft(strings.TrimPrefix(line, "PHP "), " ")
	n, s, numbered := strings.Cut(s, ". ")
	call, place, ok := cutLast(s, ") ")
	file, at, placed := cutNumber(place)
	f := Frame{File: file, Line: at}
	if f.Module, f.Function = phpCall(call); f.Function == "{main}" {
		f.Module = ""
	}
	return f, numbered && allDigits(n) && ok && placed && strings.HasSuffix(file, ".php")
}

// consoleFrame reads "App\Cart->total() at
// /app/src/Page.php:30", as Symfony's console prints calls.
func consoleFrame(s string) (Frame, bool) {
	call, place, ok := strings.Cut(s, "() at ")
	if !ok {
		return Frame{}, false
	}
	file, n, ok := cutNumber(place)
	f := Frame{File: file, Line: n}
	f.Module, f.Function = phpCall(call)
	return f, ok && strings.HasSuffix(file, ".php") && strings.IndexByte(call, ' ') < 0
}

// unescaped undoes the doubling of backslashes: Monolog writes traces as JSON.
func unescaped(s string) string {
	if !strings.Contains(s, `\\`) {
		return s
	}
	return strings.ReplaceAll(s, `\\`, `\`)
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
		thrown, _ := withoutPlace(rest)
		return markOf(wrapper, thrown)
	}
	if m := monologHeader(s); m.kind != noMark {
		return m
	}
	_, uncaught, found := strings.Cut(s, "Uncaught ")
	if !found {
		uncaught = s
	}
	if thrown, ok := withoutPlace(uncaught); ok || found {
		return markOf(header, thrown)
	}
	return classHeader(s)
}

// monologHeader reads an exception in Monolog's JSON:
// "[object] (A\\B(code: 0): no carrier at /app/a.php:12)".
func monologHeader(s string) mark {
	_, object, ok := strings.Cut(s, "[object] (")
	typ, rest, coded := strings.Cut(object, "(code: ")
	if !ok || !coded {
		return mark{}
	}
	_, message, _ := strings.Cut(rest, "): ")
	message, _, _ = cutLast(message, " at ")
	return mark{header, unescaped(typ), message}
}

// phpPlace reads the file of a syntax error: " in /srv/a.php:3" and
// "thrown in /srv/a.php on line 3".
func phpPlace(line string) Frame {
	_, place, _ := cutLast(line, " in ")
	if file, n, ok := strings.Cut(place, " on line "); ok {
		return Frame{File: file, Line: number(n)}
	}
	if file, n, ok := cutNumber(place); ok {
		return Frame{File: file, Line: n}
	}
	return Frame{}
}

// withoutPlace drops where an exception was thrown: " in /app/a.php:12".
func withoutPlace(s string) (string, bool) {
	before, place, _ := cutLast(s, " in ")
	_, _, ok := cutNumber(place)
	if !ok {
		return s, false
	}
	return before, true
}

func phpInApp(f *Frame) bool {
	if f.Function == "{main}" {
		return false
	}
	if f.Module != "" {
		return !phpLibraries[phpVendor(f.Module)]
	}
	return !isVendored(f.File) && f.File != "[internal function]"
}

// phpOwn uses paths: a function is in the file that made the call above.
// So what vendor/ calls back is own code, and an unlisted package is not.
func phpOwn(frames []Frame) {
	for i := 1; i < len(frames); i++ {
		above, f := frames[i-1].File, &frames[i]
		if above == "" || above == "[internal function]" || f.Function == "{main}" {
			continue
		}
		f.InApp = !isVendored(above)
	}
	first := &frames[0]
	for i := range frames[1:] {
		if other := &frames[i+1]; first.Module != "" && phpVendor(other.Module) == phpVendor(first.Module) && other.Module != "" {
			first.InApp = other.InApp
			return
		}
	}
}

// isVendored recognizes files of packages, and of WordPress itself.
func isVendored(path string) bool {
	_, ok := after(path, "/vendor/", "/wp-includes/")
	return ok
}

// phpPlumbing are functions of the language that only call others.
var phpPlumbing = wordSet(`call_user_func call_user_func_array array_map array_walk array_filter array_reduce usort uasort uksort iterator_apply
preg_replace_callback require require_once include include_once`)

// phpVendor is the first part of a class name.
func phpVendor(class string) string {
	vendor, _, _ := strings.Cut(class, `\`)
	return vendor
}

// phpIdentity is class and function. A closure is named by
// its function where PHP prints it, else by its namespace.
func phpIdentity(dst []byte, f *Frame) []byte {
	switch {
	case f.Function == "": // a syntax error
		return append(dst, baseName(f.File)...)
	case f.Function == "{main}" || f.Module == "" && phpPlumbing[f.Function]:
		return dst
	}
	class, _, _ := strings.Cut(f.Module, "@anonymous")
	if class != "" {
		dst = append(appendWithoutHashes(dst, class), ':')
	}
	name, inside, closure := strings.Cut(f.Function, "{closure")
	if !closure {
		return appendWithoutHashes(dst, f.Function)
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

// appendWithoutHashes appends a name without hashes of template
// engines: "__TwigTemplate_8f3a2b1c", "content_65a1b2c3d4_12345678".
func appendWithoutHashes(dst []byte, name string) []byte {
	if !hasDigit(name) {
		return append(dst, name...)
	}
	for part := range strings.SplitSeq(name, "_") {
		if !isHexWord(part, minPlainHexID) {
			dst = append(append(dst, part...), '_')
		}
	}
	return dst[:max(0, len(dst)-1)]
}
