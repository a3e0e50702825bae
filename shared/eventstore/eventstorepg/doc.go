// Package eventstorepg keeps events in Postgres: appended in the caller's
// transaction together with their projections, and read by a relay. Appends of
// one schema take turns by an advisory lock, held from the first position until
// the commit, so that a reader of one position has seen all below it. Reading
// below pg_snapshot_xmin instead would delay a revocation while any transaction
// writes anywhere in the server (ADR 9).
package eventstorepg
