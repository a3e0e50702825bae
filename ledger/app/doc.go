// Package app wires the ledger into one process. It holds settings and start-up
// order, and has no rules of balances.
package app
