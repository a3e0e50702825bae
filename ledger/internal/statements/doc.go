// Package statements issues the statement of a period in the
// transaction that closes it, and reads statements. It stands on the tables and snapshot.
package statements
