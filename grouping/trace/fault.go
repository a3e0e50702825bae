package trace

import (
	"bytes"
	"strings"
)

// EngineError reports whether the runtime itself throws errors
// of this type, in words of its own.
func (l Language) EngineError(typ string) bool { return syntaxOf(l).engine[typ] }

// IsFault reports whether errors of this type are mistakes where they
// are thrown, such as a null dereference. The innermost own function
// identifies them; its caller and the message's value do not.
func (l Language) IsFault(typ string) bool {
	name := afterLast(typeBreaks, typ)
	if faults[name] || l.EngineError(name) {
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

// IsGeneric reports whether many functions have this
// name, or only delegate, so that it locates no error.
func IsGeneric(name []byte) bool {
	last := afterLast(callBreaks, name)
	if generic[string(last)] {
		return true
	}
	for _, begin := range [...]string{"assert", "check", "require", "ensure", "throw", "raise"} {
		if bytes.HasPrefix(last, []byte(begin)) {
			return true
		}
	}
	return false
}

// WithoutFunction is a call without its function.
func WithoutFunction(call []byte) []byte { return call[:len(call)-len(afterLast(callBreaks, call))] }

// Separators in front of a name's last part.
var (
	typeBreaks = bytesOf(".:\\")
	callBreaks = bytesOf(".:#/>")
)

var generic = wordSet(`
get set run call apply invoke execute exec handle accept process main fail error panic log warn main init <init> <clinit> .ctor ctor
new of from to toString hashCode equals compareTo next read write open close load save find send start stop update create main0
doGet doPost doFilter doRun do perform dispatch callback fn func lambda anonymous wrap unwrap must Must Get Set Run Call Do Handle
Execute Invoke Process Close Open Read Write Load Save Find Send Start Stop Update Create Main Error Fail <module> <lambda> constructor`)
