// Package trace reads errors as runtimes print them: it recognizes the language of a stack trace, parses its exceptions
// and frames, tells own code from libraries, and takes what differs between two occurrences of one fault out of calls,
// types and messages. It stands on the standard library and on lists of words.
package trace
