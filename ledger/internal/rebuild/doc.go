// Package rebuild builds a ledger again from the log and the decisions, beside
// the running one, and compares the two. It only reads the running one.
package rebuild
