// Package grouping decides which errors are the same: a Grouper recognizes
// the language of a stack trace, parses its frames, removes what differs
// between two occurrences of one fault, and makes a Fingerprint of several
// hashes, the strictest first; errors that share a joining hash are one
// group. It has no clock, does no I/O and stands on the standard library
// alone; as hashes are stored, a change of any needs a new Version, and a
// test pins them.
package grouping
