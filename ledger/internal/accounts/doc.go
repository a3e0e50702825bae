// Package accounts shows all organizations to others: their states to
// ingest, which admits by them, and their list to operators. It stands on snapshot and balances.
package accounts
