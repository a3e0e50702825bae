package trace

import "strings"

// nativeIdentity is the function without arguments, template parameters and suffixes of compilers and linkers; the
// library where the function has no name.
func nativeIdentity(dst []byte, f *Frame) []byte {
	if !f.InApp && nativeReports(f.Function) || f.Function == signalHandler {
		return dst
	}
	start := len(dst)
	dst, ok := appendUnmangled(dst, f.Function)
	if !ok {
		dst = appendNative(dst, f.Function)
	}
	if len(dst) == start && f.Module != "" {
		return append(appendFileName(dst, f.Module), ':')
	}
	return dst
}

func appendNative(dst []byte, name string) []byte {
	name = withoutSwiftWords(name)
	if strings.HasPrefix(name, "-[") || strings.HasPrefix(name, "+[") {
		return append(dst, name...)
	}
	depth := 0
	for i := 0; i < len(name); i++ {
		rest := name[i:]
		switch c := name[i]; {
		case depth == 0 && strings.HasPrefix(rest, "(anonymous namespace)"):
			dst, i = append(dst, "(anonymous)"...), i+len("(anonymous namespace)")-1
		case depth == 0 && strings.HasPrefix(rest, "operator"):
			return append(dst, "operator"...)
		case c == '<':
			depth++
		case c == '>' && depth > 0:
			depth--
		case depth > 0:
		case c == '(', c == '[', c == '.' && beginsWithAny(rest, compilerParts):
			return trimmed(dst)
		case c == '#' && i+1 < len(name) && isDigit(name[i+1]):
			for i+1 < len(name) && isDigit(name[i+1]) {
				i++
			}
		default:
			dst = append(dst, c)
		}
	}
	return trimmed(dst)
}

// appendUnmangled appends a name of C++ as debuggers print it: "shop::Cart::total" of "_ZN4shop4Cart5totalEi". It does
// not read names with type arguments.
func appendUnmangled(dst []byte, name string) ([]byte, bool) {
	s, ok := strings.CutPrefix(name, "_Z")
	if !ok {
		return dst, false
	}
	s, nested := strings.CutPrefix(s, "N")
	s = strings.TrimLeft(s, "KV")
	start, last := len(dst), ""
	for digits := countDigits(s); digits > 0; digits = countDigits(s) {
		n := number(s[:digits])
		if s = s[digits:]; n == 0 || n > len(s) {
			return dst[:start], false
		}
		if last, s = s[:n], s[n:]; n == rustHash && last[0] == 'h' && isHexTail(last[1:]) {
			break
		}
		dst = append(append(dst, last...), "::"...)
		if !nested {
			return dst[:len(dst)-2], true
		}
	}
	if len(s) > 1 && (s[0] == 'C' || s[0] == 'D') && isDigit(s[1]) { // constructor or destructor
		if s[0] == 'D' {
			dst = append(dst, '~')
		}
		return append(dst, last...), last != ""
	}
	if len(dst) == start || s == "" || s[0] != 'E' {
		return dst[:start], false
	}
	return dst[:len(dst)-2], true
}

// rustHash is the length of the hash that Rust puts at the end of names.
const rustHash = 17

// compilerParts is what compilers append to the names of parts and copies of functions.
var compilerParts = strings.Fields(".isra. .part. .constprop. .cold .llvm.")

func trimmed(dst []byte) []byte {
	for len(dst) > 0 && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// withoutSwiftWords drops the compiler's remarks about copies of a function, and counters of blocks.
func withoutSwiftWords(name string) string {
	name = withoutBegins(name, "specialized ", "merged ", "@objc ", "partial apply for ", "thunk for ", "generic ")
	if i := strings.Index(name, "_block_invoke"); i > 0 {
		name = strings.TrimLeft(name[:i], "_0123456789")
	}
	return name
}
