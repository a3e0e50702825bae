package v2

import (
	"strings"

	"github.com/weirlog/weir/grouping"
)

// .NET: "at Ns.Type.Method[T](String s) in /src/C.cs:line 42"; the words
// "at" and "in" may be of another language.

func dotnetFrame(line string) (grouping.Frame, bool) {
	s := line[leadingSpace(line):]
	if !strings.HasPrefix(s, "at ") {
		return grouping.Frame{}, false
	}
	s = s[3:]
	open := strings.IndexByte(s, '(')
	if open < 1 || s[open-1] == ' ' {
		return grouping.Frame{}, false
	}
	end := strings.IndexByte(s[open:], ')')
	if end < 0 || !isParameters(s[open+1:open+end]) {
		return grouping.Frame{}, false
	}
	f := grouping.Frame{}
	f.Module, f.Function = dotnetName(s[:open])
	rest := s[open+end+1:]
	if i := strings.LastIndex(rest, ":line "); i > 0 {
		f.File, f.Line = dotnetFile(rest[:i]), number(strings.TrimSpace(rest[i+len(":line "):]))
	}
	return f, f.Function != "" && strings.IndexByte(s[:open], ' ') < 0 && (f.Module != "" || f.File != "" || f.Function == "lambda_method")
}

// isParameters tells a list of "Type name" from the place of a
// Java or JavaScript frame.
func isParameters(s string) bool {
	if s == "" {
		return true
	}
	if s == "Native Method" || s == "Unknown Source" {
		return false
	}
	return strings.IndexByte(s, ' ') > 0 && strings.IndexByte(s, ':') < 0 && strings.IndexByte(s, '/') < 0
}

// dotnetName splits a full name at its last dot; constructors are named ".ctor".
func dotnetName(s string) (module, function string) {
	bracket := strings.IndexByte(s, '[') // type arguments of the method may hold dots
	if bracket < 0 {
		bracket = len(s)
	}
	dot := strings.LastIndexByte(s[:bracket], '.')
	if dot > 0 && s[dot-1] == '.' {
		dot--
	}
	if dot < 1 {
		return "", s
	}
	return s[:dot], s[dot+1:]
}

// dotnetFile drops the word for "in" before the path.
func dotnetFile(s string) string {
	s = strings.TrimSpace(s)
	if _, path, ok := strings.Cut(s, " "); ok {
		return path
	}
	return s
}

func dotnetMark(line string) mark {
	s := strings.TrimSpace(line)
	if strings.HasPrefix(s, "--- End of inner exception stack trace") {
		return mark{kind: next}
	}
	if i := strings.LastIndex(s, "---> "); i >= 0 {
		return named(header, s[i+len("---> "):])
	}
	if strings.HasPrefix(s, "---") {
		return mark{}
	}
	return classHeader(strings.TrimPrefix(s, "Unhandled exception. "))
}

func dotnetInApp(f *grouping.Frame) bool {
	return f.Module != "" && !dotnetLibraries.hold(f.Module, '.')
}

// dotnetIdentity is type and method. State machines and closures are
// named by the method that the compiler made them from; how the
// runtime resumes and rethrows does not count.
func dotnetIdentity(dst []byte, f *grouping.Frame) []byte {
	if dotnetPlumbing(f) {
		return dst
	}
	start := len(dst)
	dst = appendDotnet(dst, f.Module)
	if f.Function == "MoveNext" && len(dst) > start && strings.IndexByte(f.Module, '<') >= 0 {
		return dst
	}
	dst = append(dst, '.')
	return appendDotnet(dst, f.Function)
}

func dotnetPlumbing(f *grouping.Frame) bool {
	return strings.HasPrefix(f.Module, "System.Runtime.CompilerServices.") || strings.HasPrefix(f.Module, "System.Runtime.ExceptionServices.") ||
		strings.HasPrefix(f.Function, "lambda_method")
}

// appendDotnet appends a name part by part: "<DoAsync>d__5" is
// "DoAsync", "<>c__DisplayClass3_0" and type arguments are
// nothing, "<F>g__Local|0_1" is "F.Local".
func appendDotnet(dst []byte, name string) []byte {
	name, _, _ = strings.Cut(name, "[")
	first := true
	for name != "" {
		i := strings.IndexAny(name, ".+")
		part := name
		if name = ""; i >= 0 {
			part, name = part[:i], part[i+1:]
		}
		outer, local := dotnetPart(part)
		for _, s := range [...]string{outer, local} {
			if s == "" {
				continue
			}
			if !first {
				dst = append(dst, '.')
			}
			dst, first = append(dst, s...), false
		}
	}
	return dst
}

func dotnetPart(part string) (outer, local string) {
	part, _, _ = strings.Cut(part, "`")
	if part == "" || part[0] != '<' {
		return part, ""
	}
	end := strings.IndexByte(part, '>')
	if end < 0 {
		return part, ""
	}
	if _, name, ok := strings.Cut(part[end:], "g__"); ok {
		local, _, _ = strings.Cut(name, "|")
	}
	return part[1:end], local
}
