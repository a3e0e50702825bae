// Package postgrestest gives tests databases on a PostgreSQL server, and servers
// that faults can be done to. Only tests and deploy import it; the README of
// testenv describes where a run takes them from.
package postgrestest
