package trace

import "strings"

// hosts are names below which each vendor has its own.
var hosts = wordSet("org.apache com.github io.github com.gitlab org.codehaus org.sourceforge net.sf net.sourceforge net.java com.google")

// javaHome is "com.acme" of "com.acme.shop.Cart", "org.apache.hive" of a class there; "" without a package.
func javaHome(class string) string {
	home := withoutLast(class)
	end := cutAt(home, min(cutAt(home, 0, '.')+1, len(home)), '.')
	if hosts[home[:end]] && end < len(home) {
		end = cutAt(home, end+1, '.')
	}
	return home[:end]
}

// withoutLast drops the last part of a dotted name.
func withoutLast(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

// cutAt is the end of the part at i of a name, up to a separator.
func cutAt(name string, i int, separator byte) int {
	if end := strings.IndexByte(name[i:], separator); end >= 0 {
		return i + end
	}
	return len(name)
}

// dotnetHome is "Acme" of "Acme.Shop.Cart"; "" without a namespace.
func dotnetHome(class string) string { return class[:max(strings.IndexByte(class, '.'), 0)] }

// OwnPackage is the package of a frame that may be the sender's own, as far as neither paths nor lists exclude it; ""
// in languages where paths do.
func OwnPackage(language Language, f *Frame) string {
	if s := syntaxOf(language); s.home != nil && s.inApp(f) {
		return s.home(f.Module)
	}
	return ""
}

// isLearned reports whether a frame is of a learned library.
func (s *syntax) isLearned(f *Frame, libraries map[string]bool) bool {
	return len(libraries) > 0 && s.home != nil && libraries[s.home(f.Module)]
}

// WhyLibrary is why frame i is a library's; "" for own code.
func (t *Trace) WhyLibrary(i int) Reason {
	f := &t.frames[i]
	if f.InApp {
		return ""
	}
	if f.Rule != 0 {
		return ByRule
	}
	if t.syntax.isLearned(f, t.libraries) && t.syntax.inApp(f) {
		return ByErrors
	}
	if isBelow("/"+f.File, installed...) {
		return ByPath
	}
	return ByName
}
