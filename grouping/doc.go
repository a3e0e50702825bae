// Package grouping decides which errors are the same: a Grouper recognizes the
// language of a stack trace, parses its frames, removes what differs between
// two occurrences of one fault, and makes a Fingerprint of several hashes, the
// strictest first. Errors that share a joining hash are one group. The package
// is pure: no clock, no I/O, standard library only. The hashes are stored, so a
// change of any needs a new Version; a test pins them.
package grouping
