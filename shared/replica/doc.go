// Package replica lets a standby of a module's database answer heavy
// reads. It answers as the primary would: a read waits until the
// standby has all that the primary had at its start, and otherwise goes
// to the primary.
package replica
