// Package parked lists, replays and discards the records that no consumer
// could apply, of all modules that share a database. It touches their
// tables of parked records and nothing else.
package parked
