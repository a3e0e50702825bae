// Package eventstore keeps streams of events: appended under a version check,
// read back in order. A stream is one thing that changes as a whole, such as
// one API key; its state is the fold of its events. It defines a store;
// package eventstorepg is one in Postgres.
package eventstore
