// Package continuous backs up a PostgreSQL server as a whole: it keeps
// base backups and all write-ahead log since the oldest, restores the
// newest by itself to prove it, and recovers the server as it was at any
// instant between. It uses PostgreSQL's own programs.
package continuous
