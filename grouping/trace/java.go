package trace

import "strings"

// Java, and with it Kotlin, Scala, Groovy and Clojure: "at java.base/pkg.Class.method(File.java:12) [jar:1.0]". Some
// senders leave "at" out.

func javaFrame(l line, f *Frame) bool {
	s, at := strings.CutPrefix(withoutIndent(l.string), "at ")
	if !at {
		s, at = strings.CutPrefix(withoutTool(s), "at ")
	}
	open := strings.IndexByte(s, '(')
	if open < 3 || s[open-1] == ' ' {
		return false
	}
	end := open + 1 + strings.IndexByte(s[open+1:], ')')
	if end == open || !at && end+1 < len(s) {
		return false
	}
	name := s[:open]
	if l.has.has('@') || l.has.has('+') {
		name, _, _ = strings.Cut(name, " + 0x")          // by .NET on Android
		if _, call, ok := strings.Cut(name, " @ "); ok { // by Cats Effect, behind an operation
			name = call
		}
	}
	dot := strings.LastIndexByte(name, '.')
	file, n, numbered := cutNumber(s[open+1 : end])
	if dot < 1 || !javaPlace(file, numbered, at) || !at && strings.IndexByte(name, ' ') >= 0 {
		return false
	}
	class := name[:dot]
	if l.has.has('/') {
		if inner := afterSlash.afterLast(class); strings.IndexByte(inner, '.') >= 0 { // "app//a.B", "java.base@17/a.B", but "a/b/C"
			class = inner
		}
	}
	*f = Frame{}
	f.Module, f.Function, f.File, f.Line = class, name[dot+1:], file, n
	return true
}

// withoutTool drops indentation and what build tools and mails put in front, such as "[exec] [junit] " and "> ".
func withoutTool(line string) string {
	s := withoutIndent(line)
	for s != "" && toolMarks.has(s[0]) {
		if s[0] == '[' {
			s = s[cutAt(s, 0, ']'):]
		}
		s = withoutIndent(s[min(1, len(s)):])
	}
	return s
}

var (
	toolMarks, afterSlash = marksOf("[>|"), marksOf("/")
	// nowhere is what Java prints without a file.
	nowhere = map[string]bool{"Native Method": true, "Unknown Source": true, "SourceFile": true, "<generated>": true, "NO_SOURCE_FILE": true}
	// The extensions of files that run in a JVM, and those that mostly run elsewhere.
	javaExtensions, scriptExtensions = wordSet("java kt kts scala groovy clj cljc jsp jruby"), wordSet("rb js")
	generatedParts                   = strings.Fields("$$ $Proxy$_$$ $ByteBuddy$ $MockitoMock$ $HibernateProxy$ $r8$lambda$")
)

// javaPlace distinguishes places such as "File.java:12" and "Native Method" from parameters. Without "at" before the
// call, only the file tells that it is one.
func javaPlace(file string, numbered, at bool) bool {
	switch {
	case numbered && at:
		return file != "" && file[0] != '<' && !strings.Contains(file, "://")
	case !numbered && nowhere[file]:
		return true
	}
	dot := strings.LastIndexByte(file, '.')
	return dot > 0 && strings.IndexByte(file, ' ') < 0 && !strings.Contains(file, "://") && (javaExtensions[file[dot+1:]] || at && scriptExtensions[file[dot+1:]])
}

func javaLine(line string) string { return withoutStackHash(withoutTool(line)) }

var javaMarks = []markForm{
	{cause, formOf("Caused by: $error")}, {wrapper, formOf("Wrapped by: $error")}, // by Logback, which can print the root cause first
	{suppressed, formOf("Suppressed: $_")},
	{threadDump, formOf("Full thread dump$_")}, {threadDump, formOf("java.lang.Thread.State: $_")},
	{cause, formOf("root cause")}, {cause, formOf("Root Cause")}, // by Tomcat
	{header, formOf("$_Exception in thread \"$_\" $error")},
}

func javaMark(l line) mark { return headerOf(l.string, isJavaClass) }

// isJavaClass recognizes also "com.acme.Closed": an error whose name says nothing of errors.
func isJavaClass(s string) bool {
	name := dots.afterLast(s)
	return isErrorName(s) || strings.Count(s, ".") > 1 && name != "" && isUpper(name[0]) && isLower(s[0])
}

// withoutStackHash drops "<#89e003a6> ", Logstash's number of a trace.
func withoutStackHash(s string) string {
	if hash, rest, ok := strings.Cut(s, "> "); ok && strings.HasPrefix(s, "<#") && isHexTail(hash[2:]) {
		return rest
	}
	return s
}

// markOf makes the mark of "Type: message".
func markOf(kind markKind, s string) mark {
	s = withoutStackHash(s)
	if typ, message, ok := typeAndMessage(s); ok {
		return mark{kind, typ, message}
	}
	return mark{kind, "", strings.TrimSpace(s)}
}

// classHeader reads the line above the frames: "pkg.SomeException: message".
func classHeader(s string) mark { return headerOf(s, isErrorName) }

// headerOf reads it with a type of such a name.
func headerOf(s string, named func(typ string) bool) mark {
	if typ, message, ok := typeAndMessage(s); ok && named(typ) {
		return mark{header, typ, message}
	}
	return mark{}
}

// isErrorName reports whether a word looks like an error's class.
func isErrorName(s string) bool {
	return endsWithAny(s, "Error", "Exception", "Failure", "Fault", "Warning", "Interrupt", "Exit")
}

// javaIdentity is class and method without generated numbers: "Foo$" of "Foo$1" and "Foo$2". Frames of reflection,
// proxies and lambdas do not count.
func javaIdentity(dst []byte, f *Frame) []byte {
	found := marksOf(f.Module)
	name, called := marksOf(f.Function), f.Function
	if isJavaPlumbing(f, found, name) {
		return dst
	}
	start, class := len(dst), f.Module
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
	dst = append(dst, '.')
	if name.has('$') && strings.HasPrefix(called, "lambda$") {
		if last := strings.LastIndexByte(called, '$'); last > len("lambda$") {
			called = called[:last] // the method around it
		}
	}
	if name.has('0') {
		return appendUncounted(dst, called)
	}
	return append(dst, called...)
}

// isJavaPlumbing reports whether a frame does not count. What is in its module and in its name tells what is worth a
// look.
func isJavaPlumbing(f *Frame, found, name marks) bool {
	m := f.Module
	return !f.InApp && beginsWithAny(m, "sun.reflect.", "jdk.internal.reflect.", "java.lang.invoke.") || f.File == "Unknown Source" && isCallSite(f) ||
		name.has('$') && (strings.HasPrefix(f.Function, "access$") || strings.HasSuffix(f.Function, "$adapted")) ||
		found.has('$') && (strings.HasPrefix(m, "$Proxy") || strings.Contains(m, "$$Lambda") || strings.HasSuffix(m, "$$FastClassBySpringCGLIB")) ||
		found.has('_') && (strings.HasPrefix(m, "_COROUTINE") || isContainerClass(m)) ||
		found.has('0') && strings.HasPrefix(m, "crc64") // by .NET on Android
}

// isCallSite recognizes the class that Groovy makes of a call, "Cart$total$0.call", and those that Quarkus, Micronaut
// and OSGi containers use to intercept one.
func isCallSite(f *Frame) bool {
	name := dots.afterLast(f.Module)
	return strings.HasPrefix(f.Function, "call") && strings.IndexByte(f.Module, '$') > 0 || strings.HasPrefix(name, "Proxy") && hasDigit(name) ||
		endsWithAny(name, "_Subclass", "_ClientProxy") || strings.Contains(name, "$Definition$")
}

// isContainerClass recognizes what WebLogic and WebSphere generate around beans: "CartBean_8z8jdz_EOImpl",
// "EJSRemote0SLCart_1a2b3c4d".
func isContainerClass(class string) bool {
	name := dots.afterLast(class)
	return endsWithAny(name, "_EOImpl", "_ELOImpl", "_HomeImpl", "_LocalHomeImpl", "_MDOImpl", "_WLSkel", "_WLStub", "_Stub", "_Tie") ||
		beginsWithAny(strings.TrimPrefix(name, "_"), "EJSRemote", "EJSLocal")
}

// withoutGenerated cuts off what a class generator appends: "Foo" of "Foo$$EnhancerBySpringCGLIB$$1a2b".
func withoutGenerated(class string) string {
	for i := cutAt(class, min(1, len(class)), '$'); i < len(class); i = cutAt(class, i+1, '$') {
		if beginsWithAny(class[i:], generatedParts...) {
			return class[:i]
		}
	}
	return class
}

// appendUncounted appends s without counters of compilers and generators.
func appendUncounted(dst []byte, s string) []byte {
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

// isJavaCounted reports whether a number after s is a counter, as in "$Proxy12", "GeneratedMethodAccessor12",
// "_closure2", "lambda-3", "CodegenStage3" and "jdk.proxy2", and after "$" and "__".
func isJavaCounted(s string) bool {
	return endsWithAny(s, "$", "__", "Proxy", "Accessor", "_closure", "lambda-", "_aroundBody", "AjcClosure", "CodegenStage", "jdk.proxy", "Script")
}
