// Package bus moves records between Weir's services: Watermill's message types in front, kafka-go's protocol behind.
//
// A Publisher writes with acks=all and an idempotent producer. A Consumer applies batches of records together with their
// positions in one Postgres transaction, so that each record takes effect once. A Subscriber is the at-least-once form for
// Watermill handlers, a StateReader follows a compacted topic into memory, a Relay publishes what a database wrote.
//
// README.md says what is promised, where each promise is kept, and what is not promised.
package bus
