// Package uncounted finds at a start the requests in the log that the ledger
// has not counted; while the ledger is far behind, stretches of the log are
// summed in the database, once for all processes. It reads the log, and
// without the database the whole gap from there.
package uncounted
