// Package backup copies the databases of an installation, each module's at one
// instant with the positions of its consumers, and brings them back. It works
// with PostgreSQL's own programs on schemas, and of brokers it only asks where
// logs begin and end.
package backup
