// Package relay publishes what a database wrote, at least once and in
// order, one relay of a name at a time. It reads an outbox that its caller
// gives it, and writes through publisher.
package relay
