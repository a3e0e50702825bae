// Package consumer applies the records of a topic once each: positions
// and effect in one Postgres transaction, with lanes so that no tenant
// waits for another's flood. It may use the protocol under internal and
// the parked records; it publishes nothing.
package consumer
