// Package benchmark measures the log store alone: the same day of entries in
// Weir's blocks on PostgreSQL and in VictoriaLogs, what they cost to store and
// to keep, and how long searches and counts of them take.
package benchmark
