// Package postgres holds the tables of the ledger, one file a noun; each statement runs in the
// transaction given. It stands on the domain and Postgres, and decides nothing. The row of an
// organization is the lock on its books; locks are taken in the order of the organizations, so
// writers don't deadlock.
package postgres
