// Package postgres holds the tables of the ledger, one file a noun; each
// statement runs in the transaction given, and decides nothing. It stands on
// the domain and Postgres, and takes locks in one order, each kind at once
// and sorted, so that writers don't deadlock. The order:
//
//	positions of the log
//	what is deleted
//	the inbox
//	organizations that are added
//	the rows of organizations, which are the locks on their books
//	days of transfers
//	what hangs on books, usage and what is unpublished
//	the cut of hours
//	the turn of decisions
//	the turn of the outbox
package postgres
