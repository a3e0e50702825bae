// Package postgres holds the tables of the ledger, one file a noun; its
// statements run in the caller's transaction and decide nothing. It stands on
// the domain and PostgreSQL, and takes locks in one order, each kind at once
// and sorted, so that writers don't deadlock. The order:
//
//	positions of the log
//	deletions
//	the inbox
//	new organizations
//	the rows of organizations, which lock their books
//	days of transfers
//	rows of books, usage and unpublished
//	the cut of hours
//	the order of decisions
//	the order of the outbox
package postgres
