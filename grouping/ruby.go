package grouping

import "strings"

// Ruby: "/a/b.rb:13:in `block in fn'", since 3.4 "/a/b.rb:13:in 'Klass#fn'";
// the first may end in ": message (Type)".

func rubyFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	s = strings.TrimPrefix(s, "from ")
	in := strings.Index(s, ":in ")
	if in < 1 || len(s) < in+len(":in `x'") {
		return Frame{}, false
	}
	file, n, ok := cutNumber(s[:in])
	name := s[in+len(":in "):]
	if !ok || name[0] != '`' && name[0] != '\'' {
		return Frame{}, false
	}
	end := strings.IndexByte(name[1:], '\'')
	if end < 1 {
		return Frame{}, false
	}
	return Frame{File: withoutNumber(file), Function: name[1 : 1+end], Line: n}, true
}

// withoutNumber drops the "2: " that Ruby prints where it numbers the calls.
func withoutNumber(file string) string {
	if n, rest, ok := strings.Cut(file, ": "); ok && allDigits(n) {
		return rest
	}
	return file
}

func rubyMark(line string) mark {
	s := strings.TrimSpace(line)
	if m := railsHeader(s); m.kind != noMark {
		return m
	}
	return classHeader(s)
}

// railsHeader reads how Rails logs an error, behind its tags: "[id]
// Cart::Closed (it is closed):".
func railsHeader(s string) mark {
	s, ok := strings.CutSuffix(s, "):")
	for ok && strings.HasPrefix(s, "[") {
		_, s, ok = strings.Cut(s, "] ")
	}
	typ, message, called := strings.Cut(s, " (")
	if !ok || !called || typ == "" || !isUpper(typ[0]) || notInType.in(typ) {
		return mark{}
	}
	return mark{header, typ, message}
}

// rubyOpens reads the line with which Ruby begins an exception, and after it
// each cause: "a.rb:1:in 'f': no (KeyError)".
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

func rubyInApp(f *Frame) bool {
	if strings.HasPrefix(f.File, "<internal:") || f.File == "" {
		return false
	}
	if _, ok := after(f.File, "/gems/", "/lib/ruby/", "/rubygems/", "/vendor/bundle/"); ok {
		return false
	}
	return !strings.HasPrefix(f.File, "(eval")
}

// rubyIdentity is file and method. A block has the name of its method; the
// class is left out, as not all releases of Ruby print it.
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

// withoutTemplateNumbers cuts what template engines append to
// "_app_views_x_html_erb___123_456" and "__tilt_123".
func withoutTemplateNumbers(name string) string {
	if !strings.HasPrefix(name, "_app_") && !strings.HasPrefix(name, "__tilt_") {
		return name
	}
	return strings.TrimRight(name, "_0123456789")
}
