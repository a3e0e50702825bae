// Package testclocks is the room of test organizations: their clock, and
// requests that only tests send. It stands on the unit of work and the tables.
package testclocks
