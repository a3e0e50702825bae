package trace

import "strings"

// Java, and with it Kotlin, Scala, Groovy and Clojure: "at
// java.base/pkg.Class.method(File.java:12) [jar:1.0]". Some
// senders leave "at" out.

func javaFrame(line string) (Frame, bool) {
	s, at := strings.CutPrefix(withoutTool(line), "at ")
	open := strings.IndexByte(s, '(')
	if open < 3 || s[open-1] == ' ' {
		return Frame{}, false
	}
	end := strings.IndexByte(s[open:], ')')
	if end < 0 {
		return Frame{}, false
	}
	name, place := withoutRemarks(s[:open]), s[open+1:open+end]
	dot := strings.LastIndexByte(name, '.')
	if dot < 1 || !javaPlace(place) || !at && !isElement(name, place, s[open+end+1:]) {
		return Frame{}, false
	}
	f := Frame{Module: withoutLoader(name[:dot]), Function: name[dot+1:], File: place}
	if file, n, ok := cutNumber(place); ok {
		f.File, f.Line = file, n
	}
	return f, true
}

// isElement recognizes what StackTraceElement.toString
// returns, which has no "at" in front of it.
func isElement(name, place, rest string) bool {
	file, _, _ := cutNumber(place)
	if rest != "" || strings.IndexByte(name, ' ') >= 0 || strings.HasSuffix(file, ".rb") || strings.HasSuffix(file, ".js") {
		return false
	}
	return isSourceName(file) || place == "Native Method" || place == "Unknown Source"
}

// withoutRemarks drops "flatMap @ ", an operation that Cats
// Effect prints, and the " + 0x1c" that .NET adds on Android.
func withoutRemarks(name string) string {
	if strings.IndexByte(name, ' ') < 0 {
		return name
	}
	if _, call, ok := strings.Cut(name, " @ "); ok {
		return call
	}
	name, _, _ = strings.Cut(name, " + 0x")
	return name
}

// withoutTool drops indentation and what build tools and
// mails put in front, such as "[exec] [junit] " and "> ".
func withoutTool(line string) string {
	s := withoutLogcat(line[leadingSpace(line):])
	for range 4 {
		end := -1
		switch {
		case strings.HasPrefix(s, "["):
			end = strings.IndexByte(s, ']')
		case strings.HasPrefix(s, ">"), strings.HasPrefix(s, "|"):
			end = 0
		}
		if end < 0 {
			break
		}
		s = s[end+1:]
		s = s[leadingSpace(s):]
	}
	return s
}

// withoutLogcat drops "E/AndroidRuntime( 1234): ".
func withoutLogcat(s string) string {
	if len(s) < len("E/a: ") || s[1] != '/' || !isUpper(s[0]) {
		return s
	}
	if _, rest, ok := strings.Cut(s, ": "); ok {
		return rest[leadingSpace(rest):]
	}
	return s
}

// javaPlace distinguishes places such as
// "File.java:12" and "Native Method" from parameters.
func javaPlace(s string) bool {
	switch s {
	case "Native Method", "Unknown Source", "SourceFile", "<generated>", "NO_SOURCE_FILE", "":
		return s != ""
	}
	file, _, numbered := cutNumber(s)
	for i := 0; i < len(file); i++ {
		if c := file[i]; c == ',' || c == '(' || c == ')' {
			return false
		}
	}
	if file == "" || strings.Contains(file, "://") {
		return false
	}
	return numbered && !strings.HasPrefix(file, "<") || isSourceName(file)
}

func isSourceName(file string) bool {
	dot := strings.LastIndexByte(file, '.')
	if dot < 1 || strings.IndexByte(file, ' ') >= 0 {
		return false
	}
	switch file[dot+1:] {
	case "java", "kt", "kts", "scala", "groovy", "clj", "cljc", "jsp", "jruby", "rb", "js":
		return true
	}
	return false
}

// withoutLoader drops class loader and module: "app//a.B" and
// "java.base@17/a.B" are "a.B". Slashes instead of dots ("a/b/C") stay.
func withoutLoader(class string) string {
	slash := strings.LastIndexByte(class, '/')
	if slash < 0 || strings.IndexByte(class[slash:], '.') < 0 {
		return class
	}
	return class[slash+1:]
}

func javaLine(line string) string { return withoutStackHash(withoutTool(line)) }

var javaIntros = []intro{
	{"Caused by: ", cause, namesBoth},
	{"Wrapped by: ", wrapper, namesBoth}, // by Logback, which can print the root cause first
	{"Suppressed: ", suppressed, namesNothing},
	{"Full thread dump", threadDump, namesNothing}, {"java.lang.Thread.State: ", threadDump, namesNothing},
}

func javaMark(s string) mark {
	if len(s) == len("root cause") && strings.EqualFold(s, "root cause") { // by Tomcat
		return mark{kind: cause}
	}
	if _, thread, ok := strings.Cut(s, "Exception in thread \""); ok {
		if _, thrown, ok := strings.Cut(thread, "\" "); ok {
			return markOf(header, thrown)
		}
	}
	typ, message, ok := typeAndMessage(s)
	if !ok || !isErrorName(typ) && !isJavaClass(typ) {
		return mark{}
	}
	return mark{header, typ, message}
}

// isJavaClass recognizes "com.acme.Closed":
// an error whose name says nothing of errors.
func isJavaClass(s string) bool {
	dot := strings.LastIndexByte(s, '.')
	return dot > 0 && strings.Count(s, ".") > 1 && dot+1 < len(s) && isUpper(s[dot+1]) && isLower(s[0])
}

// withoutStackHash drops "<#89e003a6> ", Logstash's number of a trace.
func withoutStackHash(s string) string {
	if !strings.HasPrefix(s, "<#") {
		return s
	}
	if hash, rest, ok := strings.Cut(s[2:], "> "); ok && isHexTail(hash) {
		return rest
	}
	return s
}

// markOf makes the mark of "Type: message".
func markOf(kind markKind, s string) mark {
	s = withoutStackHash(s)
	typ, message, ok := typeAndMessage(s)
	if !ok {
		message = strings.TrimSpace(s)
	}
	return mark{kind, typ, message}
}

// classHeader reads the line above the frames: "pkg.SomeException: message".
func classHeader(s string) mark {
	typ, message, ok := typeAndMessage(s)
	if !ok || !isErrorName(typ) {
		return mark{}
	}
	return mark{header, typ, message}
}

// isErrorName reports whether a word looks like an error's class.
func isErrorName(s string) bool {
	for _, end := range [...]string{"Error", "Exception", "Failure", "Fault", "Warning", "Interrupt", "Exit"} {
		if strings.HasSuffix(s, end) {
			return true
		}
	}
	return false
}

func javaInApp(f *Frame) bool {
	return !javaLibraries.contains(f.Module, '.')
}

// javaIdentity is class and method without generated numbers.
// Frames of reflection, proxies and lambdas do not count.
func javaIdentity(dst []byte, f *Frame) []byte {
	if javaPlumbing(f) {
		return dst
	}
	dst = appendJavaClass(dst, f.Module)
	dst = append(dst, '.')
	return appendJavaName(dst, f.Function)
}

func javaPlumbing(f *Frame) bool {
	m := f.Module
	switch {
	case strings.HasPrefix(m, "sun.reflect."), strings.HasPrefix(m, "jdk.internal.reflect."), strings.HasPrefix(m, "java.lang.invoke."):
		return true
	case strings.HasPrefix(f.Function, "access$"), strings.HasSuffix(f.Function, "$adapted"), strings.HasPrefix(m, "$Proxy"), strings.HasPrefix(m, "_COROUTINE"):
		return true
	case strings.HasPrefix(m, "crc64"): // by .NET on Android
		return true
	}
	if strings.IndexByte(m, '$') >= 0 && (strings.Contains(m, "$$Lambda") || strings.HasSuffix(m, "$$FastClassBySpringCGLIB")) {
		return true
	}
	return isCallSite(f) || isContainerClass(m)
}

// isCallSite recognizes the class that Groovy makes of
// a call, "Cart$total$0.call", and those that Quarkus,
// Micronaut and OSGi containers use to intercept one.
func isCallSite(f *Frame) bool {
	if f.File != "Unknown Source" {
		return false
	}
	name := f.Module[strings.LastIndexByte(f.Module, '.')+1:]
	return strings.HasPrefix(f.Function, "call") && strings.IndexByte(f.Module, '$') > 0 || strings.HasPrefix(name, "Proxy") && hasDigit(name) ||
		strings.HasSuffix(f.Module, "_Subclass") || strings.HasSuffix(f.Module, "_ClientProxy") || strings.Contains(f.Module, "$Definition$")
}

// isContainerClass recognizes what WebLogic and WebSphere generate
// around beans: "CartBean_8z8jdz_EOImpl", "EJSRemote0SLCart_1a2b3c4d".
func isContainerClass(class string) bool {
	if strings.IndexByte(class, '_') < 0 {
		return false
	}
	name := class[strings.LastIndexByte(class, '.')+1:]
	for _, end := range [...]string{"_EOImpl", "_ELOImpl", "_HomeImpl", "_LocalHomeImpl", "_MDOImpl", "_WLSkel", "_WLStub", "_Stub", "_Tie"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	name = strings.TrimPrefix(name, "_")
	return strings.HasPrefix(name, "EJSRemote") || strings.HasPrefix(name, "EJSLocal")
}

// appendJavaClass appends a class name up to its generated part,
// without numbers of anonymous classes: "Foo" of
// "Foo$$EnhancerBySpringCGLIB$$1a2b", "Foo$" of "Foo$1" and "Foo$2".
func appendJavaClass(dst []byte, class string) []byte {
	start := len(dst)
	dst = appendUncounted(dst, withoutGenerated(class))
	if strings.IndexByte(class, '/') < 0 {
		return dst
	}
	for i := start; i < len(dst); i++ {
		if dst[i] == '/' {
			dst[i] = '.'
		}
	}
	return dst
}

// withoutGenerated cuts off what a class generator appends.
func withoutGenerated(class string) string {
	if strings.IndexByte(class, '$') < 0 {
		return class
	}
	for _, generated := range [...]string{"$Proxy$_$$", "$$", "_$$_", "$ByteBuddy$", "$MockitoMock$", "$HibernateProxy$", "$r8$lambda$"} {
		if i := strings.Index(class, generated); i > 0 {
			class = class[:i]
		}
	}
	return class
}

// appendUncounted appends s without counters of compilers and generators.
func appendUncounted(dst []byte, s string) []byte {
	if !hasDigit(s) {
		return append(dst, s...)
	}
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && isDigit(s[end]) {
			end++
		}
		if end > i && end-i < minInnerNumber && !isJavaCounted(s[:i]) {
			dst = append(dst, s[i:end]...)
		}
		for i = end; i < len(s) && !isDigit(s[i]); i++ {
		}
		dst = append(dst, s[end:i]...)
	}
	return dst
}

// isJavaCounted reports whether a number after s is a counter, as in
// "$Proxy12", "GeneratedMethodAccessor12", "_closure2", "lambda-3",
// "CodegenStage3" and "jdk.proxy2", and after "$" and "__".
func isJavaCounted(s string) bool {
	for _, end := range [...]string{"$", "__", "Proxy", "Accessor", "_closure", "lambda-", "_aroundBody", "AjcClosure", "CodegenStage", "jdk.proxy", "Script"} {
		if strings.HasSuffix(s, end) {
			return true
		}
	}
	return false
}

// appendJavaName appends a method name. A
// lambda is named by the method around it.
func appendJavaName(dst []byte, name string) []byte {
	if rest, ok := strings.CutPrefix(name, "lambda$"); ok {
		if i := strings.LastIndexByte(rest, '$'); i > 0 {
			rest = rest[:i]
		}
		dst, name = append(dst, "lambda$"...), rest
	}
	return appendUncounted(dst, name)
}
