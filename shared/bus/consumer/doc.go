// Package consumer applies each record of a topic once: positions and
// effect in one PostgreSQL transaction, with lanes so that no tenant
// waits for another's flood. It may use the protocol under internal and
// the parked records; it publishes nothing.
package consumer
