// Package backup copies the databases of an installation, each module's
// at one instant with the positions of its consumers, and restores
// them. It uses PostgreSQL's own programs on schemas, and only asks
// brokers where logs begin and end.
package backup
