package trace

import "strings"

// maxNested is how many nested errors a text is searched for.
const maxNested = 4

// Unwrapped returns s under the name of the error that it is about: log lines, remote calls and wrappers name it only
// in their text.
func (s Span) Unwrapped() Span {
	for range maxNested {
		typ, message, ok := nestedError(s.Message)
		if !ok && (!isErrorName(s.Type) || strings.Contains(s.Message, "failure: Lost task ")) { // by Spark
			typ, message, ok = errorWithin(s.Message)
		}
		if !ok {
			break
		}
		s.Type, s.Message = typ, message
	}
	switch s.Message {
	case "null", "None", "nil", "undefined": // how languages print an absent message
		s.Message = ""
	}
	return s
}

// nestedError reads a message that is another error: "java.io.IOException: broken pipe".
func nestedError(message string) (typ, rest string, ok bool) {
	typ, rest, ok = typeAndMessage(message)
	return typ, rest, ok && isErrorName(typ) && !genericErrors[typ]
}

// errorWithin reads a message in which an error follows a few words: "cannot report: java.io.IOException: broken pipe".
func errorWithin(message string) (typ, rest string, ok bool) {
	for found := true; found && !ok; {
		if _, message, found = strings.Cut(message, ": "); found {
			typ, rest, ok = nestedError(message)
		}
	}
	return typ, rest, ok
}

// genericErrors are names that only mean error.
var genericErrors = wordSet("Error Exception Failure Fault Warning")
