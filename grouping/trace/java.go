package trace

import "strings"

// Java, and with it Kotlin, Scala, Groovy and Clojure: "at
// java.base/pkg.Class.method(File.java:12) [jar:1.0]". Some
// senders leave "at" out.

func javaFrame(line string, f *Frame) bool {
	s, at := strings.CutPrefix(line[leadingSpace(line):], "at ")
	if !at {
		s, at = strings.CutPrefix(withoutTool(s), "at ")
	}
	open := strings.IndexByte(s, '(')
	if open < 3 || s[open-1] == ' ' || !at && s[len(s)-1] != ')' {
		return false
	}
	end := strings.IndexByte(s[open:], ')')
	if end < 0 {
		return false
	}
	name, place := withoutRemarks(s[:open]), s[open+1:open+end]
	dot := strings.LastIndexByte(name, '.')
	file, n, numbered := cutNumber(place)
	if dot < 1 || !javaPlace(file, numbered) || !at && !isElement(name, file, numbered, s[open+end+1:]) {
		return false
	}
	*f = Frame{Module: withoutLoader(name[:dot]), Function: name[dot+1:], File: file, Line: n}
	return true
}

// isJavaAlone tells a call from one of JavaScript, whose place has a column.
func isJavaAlone(f *Frame) bool { return f.Line > 0 && strings.IndexByte(f.File, ':') < 0 }

// isElement recognizes what StackTraceElement.toString
// returns, which has no "at" in front of it.
func isElement(name, file string, numbered bool, rest string) bool {
	if rest != "" || strings.IndexByte(name, ' ') >= 0 || strings.HasSuffix(file, ".rb") || strings.HasSuffix(file, ".js") {
		return false
	}
	return isSourceName(file) || !numbered && (file == "Native Method" || file == "Unknown Source")
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
func javaPlace(file string, numbered bool) bool {
	switch {
	case file == "", notInPlace.occursIn(file), strings.Contains(file, "://"):
		return false
	case numbered && file[0] != '<' || isSourceName(file):
		return true
	}
	return !numbered && nowhere[file]
}

var notInPlace = marksOf(",(")

// nowhere is what Java prints without a file.
var nowhere = map[string]bool{"Native Method": true, "Unknown Source": true, "SourceFile": true, "<generated>": true, "NO_SOURCE_FILE": true}

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
	if strings.IndexByte(class, '/') < 0 { // faster than from the end
		return class
	}
	slash := strings.LastIndexByte(class, '/')
	if strings.IndexByte(class[slash:], '.') < 0 {
		return class
	}
	return class[slash+1:]
}

func javaLine(line string) string { return withoutStackHash(withoutTool(line)) }

var javaMarks = []markForm{
	{cause, formOf("Caused by: $error")}, {wrapper, formOf("Wrapped by: $error")}, // by Logback, which can print the root cause first
	{suppressed, formOf("Suppressed: $_")},
	{threadDump, formOf("Full thread dump$_")}, {threadDump, formOf("java.lang.Thread.State: $_")},
	{cause, formOf("root cause")}, {cause, formOf("Root Cause")}, // by Tomcat
	{header, formOf("$_Exception in thread \"$_\" $error")},
}

func javaMark(s string) mark {
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
	return endsWithAny(s, errorNames)
}

var errorNames = strings.Fields("Error Exception Failure Fault Warning Interrupt Exit")

func javaInApp(f *Frame) bool {
	return !javaLibraries.contains(f.Module)
}

// javaIdentity is class and method without generated numbers.
// Frames of reflection, proxies and lambdas do not count.
func javaIdentity(dst []byte, f *Frame) []byte {
	found := marksOf(f.Module)
	if javaPlumbing(f, found) {
		return dst
	}
	dst = appendJavaClass(dst, f.Module, found)
	dst = append(dst, '.')
	return appendJavaName(dst, f.Function)
}

// javaPlumbing reports whether a frame does not count.
// found is what is in its module.
func javaPlumbing(f *Frame, found marks) bool {
	m := f.Module
	if !f.InApp && beginsWithAny(m, javaInvokers) || strings.HasPrefix(f.Function, "access$") || strings.HasSuffix(f.Function, "$adapted") {
		return true
	}
	if found.has('$') && (strings.HasPrefix(m, "$Proxy") || strings.Contains(m, "$$Lambda") || strings.HasSuffix(m, "$$FastClassBySpringCGLIB")) {
		return true
	}
	if strings.HasPrefix(m, "crc64") { // by .NET on Android
		return true
	}
	return isCallSite(f) || found.has('_') && (strings.HasPrefix(m, "_COROUTINE") || isContainerClass(m))
}

// javaInvokers call methods by reflection.
var javaInvokers = strings.Fields("sun.reflect. jdk.internal.reflect. java.lang.invoke.")

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
	name := class[strings.LastIndexByte(class, '.')+1:]
	return endsWithAny(name, containerParts) || beginsWithAny(strings.TrimPrefix(name, "_"), containerNames)
}

var (
	containerParts = strings.Fields("_EOImpl _ELOImpl _HomeImpl _LocalHomeImpl _MDOImpl _WLSkel _WLStub _Stub _Tie")
	containerNames = strings.Fields("EJSRemote EJSLocal")
)

// appendJavaClass appends a class name up to its generated part,
// without numbers of anonymous classes: "Foo" of
// "Foo$$EnhancerBySpringCGLIB$$1a2b", "Foo$" of "Foo$1" and "Foo$2".
func appendJavaClass(dst []byte, class string, found marks) []byte {
	start := len(dst)
	if found.has('$') {
		class = withoutGenerated(class)
	}
	if found.has('0') {
		dst = appendUncounted(dst, class)
	} else {
		dst = append(dst, class...)
	}
	for i := start; found.has('/') && i < len(dst); i++ {
		if dst[i] == '/' {
			dst[i] = '.'
		}
	}
	return dst
}

// withoutGenerated cuts off what a class generator appends.
func withoutGenerated(class string) string {
	for i := strings.IndexByte(class, '$'); i >= 0 && i < len(class); i++ {
		if class[i] == '$' && i > 0 && beginsWithAny(class[i:], generatedParts) {
			return class[:i]
		}
	}
	return class
}

var generatedParts = strings.Fields("$$ $Proxy$_$$ $ByteBuddy$ $MockitoMock$ $HibernateProxy$ $r8$lambda$")

// appendUncounted appends s without counters of compilers and generators.
func appendUncounted(dst []byte, s string) []byte {
	if !hasDigit(s) {
		return append(dst, s...)
	}
	for i := 0; i < len(s); {
		end := i + countDigits(s[i:])
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
	return endsWithAny(s, javaCounted)
}

var javaCounted = strings.Fields("$ __ Proxy Accessor _closure lambda- _aroundBody AjcClosure CodegenStage jdk.proxy Script")

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
