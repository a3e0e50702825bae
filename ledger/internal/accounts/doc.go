// Package accounts is what others see of all organizations: the states by
// which ingest admits, round by round, and the list for who runs the
// installation. It stands on snapshot and balances.
package accounts
