// Package bus is where tenants meets the others: it publishes what they need to know, and follows its own credentials
// as they come back, like everyone else does.
package bus
