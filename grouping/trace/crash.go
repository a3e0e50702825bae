package trace

import "strings"

// nativeLine drops the process that Valgrind puts before each line.
func nativeLine(line string) string {
	s := strings.TrimSpace(line)
	if _, rest, ok := strings.Cut(s, "== "); ok && s[0] == '=' {
		return strings.TrimSpace(rest)
	}
	return s
}

var nativeMarks = []markForm{
	{header, formOf("Uncaught Kotlin exception: $error")}, {header, formOf("FATAL ERROR: $msg")}, // by Node
	{stack, formOf("Previous $_")}, {stack, formOf("freed by thread$_")}, {stack, formOf("previously allocated by$_")},
	{stack, formOf("allocated by thread$_")}, {stack, formOf("SUMMARY: $_")}, {stack, formOf("Thread $_")},
	{stack, formOf("Uninitialized value was created$_")}, {stack, formOf("Address 0x$_")}, {stack, formOf("Process terminating$_")},
	{messageBelow, formOf("terminate called after throwing an instance of '$type'")},
	{header, formOf("$_: Fatal error: $msg")}, {header, formOf("$_: runtime error: $msg")}, // by Swift, UndefinedBehaviorSanitizer
}

func nativeMark(l line) mark {
	if fault, ok := sanitizerFault(l.string); ok {
		return mark{kind: header, typ: fault}
	}
	if i := strings.Index(l.string, ": Assertion `"); i >= 0 {
		return mark{kind: header, message: l.string[i+2:]}
	}
	if fault, _, ok := strings.Cut(l.string, " of size "); ok && strings.HasPrefix(fault, "Invalid ") { // by Valgrind
		return mark{kind: header, typ: fault}
	}
	if signal := signalIn(l.string); signal != "" {
		return mark{kind: header, typ: signal}
	}
	return mark{}
}

// sanitizerFault reads "==1==ERROR: AddressSanitizer: attempting double-free
// on 0x60" and "WARNING: ThreadSanitizer: data race (pid=1)".
func sanitizerFault(s string) (fault string, ok bool) {
	_, fault, ok = strings.Cut(s, "Sanitizer: ")
	for _, end := range [...]string{" on ", " (", ": ", " /"} {
		fault, _, _ = strings.Cut(fault, end)
	}
	return strings.TrimPrefix(fault, "attempting "), ok
}

// withoutBanner drops a message that is a line of a sanitizer's report.
func (s *Span) withoutBanner() {
	if !strings.Contains(s.Message, "Sanitizer:") && !strings.HasSuffix(s.Message, "=ABORTING") {
		return
	}
	if fault, _ := sanitizerFault(s.Message); s.Type == "" {
		s.Type = fault
	}
	s.Message = ""
}

// signalIn is the signal that a line names: "*** Signal 11 (SIGSEGV)".
// One that a program raises to end itself says nothing.
func signalIn(s string) string {
	if !strings.Contains(s, "SIG") {
		return ""
	}
	return wordOf(s, signals)
}

// wordOf is the first word of a text that is in a set.
func wordOf(s string, set map[string]bool) string {
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r > '~' || r != '_' && r != '-' && !isAlnum(byte(r)) }) {
		if set[word] {
			return word
		}
	}
	return ""
}

var signals = wordSet("SIGBUS SIGFPE SIGILL SIGSEGV SIGSYS SIGTRAP")

// memoryFault reports whether a type only says that memory was misused. Which
// word a build, a sanitizer or a system has for it is chance.
func memoryFault(typ string) bool {
	return wordOf(typ, memoryFaults) != "" ||
		beginsWithAny(typ, "Segmentation fault", "segmentation fault", "Bus error", "Access violation", "Invalid read", "Invalid write", "Invalid free")
}
