package trace

import "strings"

// EngineError reports whether the runtime itself throws errors
// of this type, in words of its own.
func (l Language) EngineError(typ string) bool { return syntaxOf(l).engine[typ] }

// IsFault reports whether errors of this type are mistakes of the function
// that throws them, such as a null dereference: its caller does not identify
// them. What is missing by its key or index is no such mistake.
func (l Language) IsFault(typ string) bool {
	name := afterLast(typeBreaks, typ)
	return faults[name] || l.EngineError(name) || strings.HasSuffix(name, "NullPointerException") || strings.HasSuffix(name, "ClassCastException")
}

var faults = wordSet(`
ArithmeticException ArrayStoreException ConcurrentModificationException IllegalMonitorStateException NegativeArraySizeException
StackOverflowError UnsupportedOperationException UninitializedPropertyAccessException MatchError
TypeError ReferenceError AttributeError NameError UnboundLocalError ZeroDivisionError RecursionError NotImplementedError
NoMethodError FrozenError UncaughtThrowError NilClass
NullReferenceException InvalidCastException DivideByZeroException ArrayTypeMismatchException NotImplementedException
UndefinedMethodError ArgumentCountError DivisionByZeroError`)

// IsOverflow reports endless recursion. Where it
// ends is chance; its cycle of functions is the bug.
func IsOverflow(typ, message string) bool {
	for _, name := range [...]string{"StackOverflow", "RecursionError", "SystemStackError", "InsufficientExecutionStack"} {
		if strings.Contains(typ, name) {
			return true
		}
	}
	return strings.Contains(message, "call stack size exceeded") || strings.Contains(message, "too much recursion") ||
		strings.Contains(message, "stack overflow")
}

// Separators in front of a name's last part.
var (
	typeBreaks = bytesOf(".:\\")
	callBreaks = bytesOf(".:#/>")
)
