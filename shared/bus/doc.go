// Package bus is what all parts of the bus have in common: records,
// errors, authentication at brokers, tables. It moves nothing itself;
// publisher, consumer, state, relay, parked, topics and watermillbus do,
// each a package beside this one. README.md lists the promises, where
// each is kept, and what is not promised.
package bus
