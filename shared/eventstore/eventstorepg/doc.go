// Package eventstorepg keeps events in PostgreSQL: appended in the
// caller's transaction together with their projections, and read by a
// relay. It uses one schema, whose appends take turns by an advisory
// lock, held from the first position until the commit, so that a reader
// of one position has seen all below it (ADR 9).
package eventstorepg
