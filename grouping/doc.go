// Package grouping decides which errors are the same: of an error that
// package trace has read, a Grouper makes a Fingerprint of several hashes,
// the strictest first; errors that share a joining hash are one group. It has
// no clock, does no I/O and stands on the standard library and trace alone;
// as hashes are stored, a change of any needs a new Version, and a test pins
// them.
package grouping
