// Package postgres stores error groups; it stands on the domain and
// Postgres, and decides nothing. Writers take locks in one order, budgets,
// hashes, groups, occurrences, each sorted, so they never deadlock.
package postgres
