// Package gap finds out what is in the log and not counted by the ledger, at a start, and keeps that short: while the ledger is far behind, whole
// stretches of the log are summed up in the database, once for all processes. Without the database the whole gap is read from the log.
package gap
