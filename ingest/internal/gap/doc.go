// Package gap finds at a start what is in the log and not counted by
// the ledger. While the ledger is far behind, whole stretches of the
// log are summed in the database, once for all processes. Without the
// database the whole gap is read from the log.
package gap
