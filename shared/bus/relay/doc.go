// Package relay publishes a database's outbox, at least once and in
// order, with one relay of a name at a time. Its caller reads the
// outbox; it writes through publisher.
package relay
