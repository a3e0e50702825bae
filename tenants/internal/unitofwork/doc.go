// Package unitofwork is the one way to write: it loads things, stores
// what is decided about them, projects and audits that in one
// transaction, and waits until it is in force. It may touch the events
// and the transaction, but no table of a room.
package unitofwork
