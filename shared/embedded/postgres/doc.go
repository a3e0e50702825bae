// Package postgres runs a PostgreSQL server for the process, for
// development and tests: it finds or fetches the binaries, creates a
// database in a directory, and starts it as an ordinary user, on
// 127.0.0.1, with a password in a file that only the caller can read.
// It uses only that directory; the server outlives a killed caller, the
// next start takes it over, and Supervise restarts one that has ended.
package postgres
