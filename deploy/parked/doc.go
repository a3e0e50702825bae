// Package parked lists, replays and discards the records that no
// consumer could apply, of all modules that share a database. It uses
// only their tables of parked records.
package parked
