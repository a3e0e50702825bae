// Package postgres holds the tables of the ledger: one file a noun, each statement in the transaction that is its argument. It stands on
// the domain and on Postgres, and decides nothing. The row of an organization is the lock on its books. Locks are taken in the order of the
// organizations, so writers never deadlock on them.
package postgres
