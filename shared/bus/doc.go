// Package bus holds what all parts of the bus share: records, errors,
// authentication at brokers, tables. It moves no record: publisher,
// consumer, state, relay, parked and topics do, each a package beside
// this one, with the guarantees of README.md.
package bus
