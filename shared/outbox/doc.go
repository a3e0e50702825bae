// Package outbox keeps the events that a module publishes, in the
// module's own schema: written in the transaction that makes them true,
// read by a relay. It uses one table and no broker.
package outbox
