package trace

import "strings"

// IsFault reports whether an error is a mistake of the function that throws it, such as a null dereference: its caller
// does not identify it. What is missing by its key or index is no such mistake.
func (l Language) IsFault(typ, message string) bool {
	if GoFault(message) != "" {
		return true
	}
	name := typeBreaks.afterLast(typ)
	if (l == Native || l == Unknown) && memoryFault(typ) {
		return true
	}
	return faults[name] || strings.HasSuffix(name, "NullPointerException") || strings.HasSuffix(name, "ClassCastException")
}

// GoFault is the fault of which Go's runtime has no type of its own; "" where the message names none.
func GoFault(message string) string {
	fault, ok := strings.CutPrefix(message, "runtime error: ")
	if ok && (strings.HasPrefix(fault, "invalid memory address") || strings.HasPrefix(fault, "integer divide")) {
		return fault
	}
	return ""
}

// IsOverflow reports endless recursion. Where it ends is chance; its cycle of functions is the bug.
func IsOverflow(typ, message string) bool {
	return strings.Contains(typ, "Stack") && containsAny(typ, overflowTypes) || strings.HasSuffix(typ, "RecursionError") ||
		strings.Contains(message, "too much recursion") ||
		strings.Contains(message, "stack") && (strings.Contains(message, "call stack size exceeded") || strings.Contains(message, "stack overflow"))
}

var overflowTypes = partsOf("StackOverflow", "SystemStackError", "InsufficientExecutionStack")

// typeBreaks are in front of the last part of a type's name.
var typeBreaks = marksOf(".:\\")
