package v2

import "strings"

// isFault reports whether errors of this type are mistakes at the very place
// where they are thrown, such as the use of a null reference. There the
// innermost function of the sender's own code says it all: who called it and
// what the message says about the value at hand does not make another bug.
func isFault(typ string) bool {
	name := typ[strings.LastIndexAny(typ, ".:\\")+1:]
	if faults[name] {
		return true
	}
	for _, end := range [...]string{"IndexOutOfBoundsException", "NullPointerException", "ClassCastException"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

var faults = wordSet(`
ArithmeticException ArrayStoreException ConcurrentModificationException IllegalMonitorStateException
NegativeArraySizeException NoSuchElementException NumberFormatException StackOverflowError
UnsupportedOperationException UninitializedPropertyAccessException KotlinNullPointerException MatchError
TypeError ReferenceError AttributeError NameError UnboundLocalError IndexError KeyError ZeroDivisionError
RecursionError NotImplementedError NoMethodError FrozenError UncaughtThrowError NilClass
NullReferenceException IndexOutOfRangeException InvalidCastException KeyNotFoundException DivideByZeroException
ArrayTypeMismatchException NotImplementedException UndefinedMethodError ArgumentCountError DivisionByZeroError`)

// isOverflow reports whether the error is endless recursion. Where it
// ends is chance; the circle is the bug.
func isOverflow(typ, message string) bool {
	for _, name := range [...]string{"StackOverflow", "RecursionError", "SystemStackError", "InsufficientExecutionStack"} {
		if strings.Contains(typ, name) {
			return true
		}
	}
	return strings.Contains(message, "call stack size exceeded") || strings.Contains(message, "too much recursion") ||
		strings.Contains(message, "stack overflow")
}
