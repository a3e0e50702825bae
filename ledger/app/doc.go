// Package app wires the ledger into one process. It holds settings and start-up
// order, and decides nothing about balances.
package app
