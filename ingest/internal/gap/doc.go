// Package gap finds at a start what is in the log and not counted by the
// ledger; while the ledger is far behind, whole stretches of the log are
// summed in the database, once for all processes. It reads the log, and
// without the database the whole gap from there.
package gap
