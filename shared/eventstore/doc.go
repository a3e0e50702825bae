// Package eventstore keeps streams of events, appended under a version
// check and read back in order: a stream is one thing that changes as a
// whole, such as one API key, and its state is the fold of its events. It
// defines a store and uses none; package eventstorepg is one in PostgreSQL.
package eventstore
