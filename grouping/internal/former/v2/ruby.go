package v2

import (
	"strings"

	"github.com/weirlog/weir/grouping"
)

// Ruby: "/a/b.rb:13:in `block in fn'", since 3.4 "/a/b.rb:13:in 'Klass#fn'";
// the first may end in ": message (Type)".

func rubyFrame(line string) (grouping.Frame, bool) {
	s := line[leadingSpace(line):]
	s = strings.TrimPrefix(s, "from ")
	in := strings.Index(s, ":in ")
	if in < 1 || len(s) < in+len(":in `x'") {
		return grouping.Frame{}, false
	}
	file, n, ok := cutNumber(s[:in])
	name := s[in+len(":in "):]
	if !ok || name[0] != '`' && name[0] != '\'' {
		return grouping.Frame{}, false
	}
	end := strings.IndexByte(name[1:], '\'')
	if end < 1 {
		return grouping.Frame{}, false
	}
	return grouping.Frame{File: withoutNumber(file), Function: name[1 : 1+end], Line: n}, true
}

// withoutNumber drops the "2: " that Ruby prints where it numbers the calls.
func withoutNumber(file string) string {
	if n, rest, ok := strings.Cut(file, ": "); ok && allDigits(n) {
		return rest
	}
	return file
}

func rubyMark(line string) mark { return classHeader(strings.TrimSpace(line)) }

func rubyInApp(f *grouping.Frame) bool {
	if strings.HasPrefix(f.File, "<internal:") || f.File == "" {
		return false
	}
	if _, ok := after(f.File, "/gems/", "/lib/ruby/", "/rubygems/", "/vendor/bundle/"); ok {
		return false
	}
	return !strings.HasPrefix(f.File, "(eval")
}

// rubyIdentity is file and method. A block is named by its method; whether the
// class is printed depends on the release of Ruby, so it is left out.
func rubyIdentity(dst []byte, f *grouping.Frame) []byte {
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

// withoutTemplateNumbers cuts what the template engine appends
// to "_app_views_x_html_erb___123_456".
func withoutTemplateNumbers(name string) string {
	if !strings.HasPrefix(name, "_app_") {
		return name
	}
	return strings.TrimRight(name, "_0123456789")
}
