package trace

import "strings"

// Ruby: "/a/b.rb:13:in `block in fn'", since 3.4 "/a/b.rb:13:in 'Klass#fn'";
// the first may end in ": message (Type)".

var rubyForms = []form{
	formOf("from $place:in `$fn'$_").checked(isRubyCall), formOf("from $place:in '$fn'$_").checked(isRubyCall),
	formOf("$place:in `$fn'$_").checked(isRubyCall), formOf("$place:in '$fn'$_").checked(isRubyCall),
}

func isRubyCall(f *Frame) bool {
	return f.Function != "" && !strings.Contains(f.File, ": from ")
}

// rubyTerminalLine reads "\t2: from /a/b.rb:13:in `fn'": on a terminal, Ruby
// 2.5 to 2.7 number calls, and print the innermost last, without a number.
func rubyTerminalLine(line string) string {
	if call, ok := cutCallNumber(line); ok {
		return call
	}
	if leadingSpace(line) > 0 {
		return ""
	}
	return line
}

// cutCallNumber takes "2: from " off a line.
func cutCallNumber(line string) (call string, ok bool) {
	n, call, ok := strings.Cut(line[leadingSpace(line):], ": from ")
	return call, ok && allDigits(n)
}

var rubyMarks = []markForm{
	{headerBelow, formOf("rake aborted!$_")}, {causeBelow, formOf("Caused by:$_")},
}

func rubyMark(s string) mark {
	if m := railsHeader(s); m.kind != noMark {
		return m
	}
	if _, inspected, ok := strings.Cut(s, ": #<"); ok && isDigit(s[0]) { // by Puma, behind a date
		return markOf(header, strings.TrimSuffix(inspected, ">"))
	}
	_, logged, ok := strings.Cut(s, " WARN: ") // by Sidekiq
	if typ, message, named := typeAndMessage(logged); ok && named && isUpper(typ[0]) {
		return mark{header, typ, message}
	}
	return classHeader(s)
}

// railsHeader reads an error as Rails logs it, after
// its tags: "[id] Cart::Closed (it is closed):".
func railsHeader(s string) mark {
	s, whole := strings.CutSuffix(s, "):")
	for tagged := true; tagged && strings.HasPrefix(s, "["); {
		_, s, tagged = strings.Cut(s, "] ")
	}
	typ, message, called := strings.Cut(s, " (")
	if !called || typ == "" || !isUpper(typ[0]) || notInType.occursIn(typ) || typ == "Traceback" {
		return mark{}
	}
	if !whole && !isErrorName(typ) && !strings.Contains(typ, "::") { // its message goes on below
		return mark{}
	}
	return mark{header, typ, message}
}

// rubyOpens reads the line with which Ruby begins an
// exception or a cause: "a.rb:1:in 'f': no (KeyError)".
func rubyOpens(line string) mark {
	if strings.HasPrefix(line[leadingSpace(line):], "from ") || !strings.HasSuffix(line, ")") {
		return mark{}
	}
	_, rest, ok := strings.Cut(line, "': ")
	open := strings.LastIndex(rest, " (")
	if !ok || open < 0 || strings.ContainsAny(rest[open+2:], " ,") {
		return mark{}
	}
	return mark{opening, rest[open+2 : len(rest)-1], rest[:open]}
}

// rubyTerminalOpens reads the last line of an
// exception, which names it. Causes come first.
func rubyTerminalOpens(line string) mark {
	if _, numbered := cutCallNumber(line); numbered {
		return mark{kind: another}
	}
	named := rubyOpens(line)
	if named.kind == opening {
		named.kind = trailer
	}
	return named
}

func rubyInApp(f *Frame) bool {
	if strings.HasPrefix(f.File, "<internal:") || strings.Contains(f.File, ") ") || f.File == "" { // Rails names gems: "actionpack (7.0.4) lib/a.rb"
		return false
	}
	if _, ok := after(f.File, "/gems/", "/lib/ruby/", "/rubygems/", "/vendor/bundle/"); ok {
		return false
	}
	return !strings.HasPrefix(f.File, "(eval")
}

// rubyOwn takes functions written in C for the runtime's. Until
// release 3.4, Ruby printed them with the place of their caller.
func rubyOwn(frames []Frame) {
	for i := range len(frames) - 1 {
		f, caller := &frames[i], &frames[i+1]
		if f.Line == caller.Line && f.File == caller.File && f.Function != caller.Function && !strings.Contains(f.Function, " in ") {
			f.InApp = false
		}
	}
}

// rubyIdentity is file and method. A block is named by its
// method. The class is left out, as not all releases print it.
func rubyIdentity(dst []byte, f *Frame) []byte {
	dst = append(dst, withoutTemplateNumbers(strings.TrimSuffix(baseName(f.File), ".rb"))...)
	dst = append(dst, ':')
	name := f.Function
	if i := strings.LastIndex(name, " in "); i >= 0 {
		name = name[i+len(" in "):]
	}
	if i := strings.LastIndexAny(name, "#."); i >= 0 && i+1 < len(name) && name[0] != '<' {
		name = name[i+1:]
	}
	return append(dst, withoutTemplateNumbers(name)...)
}

// withoutTemplateNumbers cuts numbers of template engines
// off "_app_views_x_html_erb___123_456" and "__tilt_123".
func withoutTemplateNumbers(name string) string {
	if !strings.HasPrefix(name, "_app_") && !strings.HasPrefix(name, "__tilt_") {
		return name
	}
	return strings.TrimRight(name, "_0123456789")
}
