// Package unitofwork is the one way to write: it loads aggregates,
// stores decisions about them, projects and audits these in one
// transaction, and waits until they are in force. It may touch the
// events and the transaction, but no table of a room.
package unitofwork
