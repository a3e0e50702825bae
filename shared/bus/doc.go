// Package bus is what all parts of the bus have in common: records, errors,
// authentication at brokers, tables. It moves nothing itself; publisher,
// consumer, state, relay, parked, topics and watermillbus do, each a package
// beside this one, by the promises of README.md.
package bus
