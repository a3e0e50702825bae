// Package statements makes the statement of a period that
// closes, in the transaction that closes it, and reads
// statements. It stands on the tables and snapshot.
package statements
