// Package postgres holds the tables of the ledger, one file a noun;
// each statement runs in the transaction given. It stands on the
// domain and Postgres, and decides nothing.
//
// Writers don't deadlock, because all take locks in one order, and each
// kind at once and sorted: positions of the log, what is deleted, the
// inbox; organizations that are added; the rows of organizations, which
// are the locks on their books; days of transfers; what hangs on books,
// usage and what is unpublished; the cut of hours; the turn of decisions;
// the turn of the outbox, the last of all. Who needs a lock that comes
// before one that it has asks for it earlier.
package postgres
