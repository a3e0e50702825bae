// Package postgres is the log store: blocks of entries in Postgres. It stands
// on the domain and Postgres, and touches no table but its own.
package postgres
