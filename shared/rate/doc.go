// Package rate limits how often, and how much, somebody may ask: token buckets of one number each, and bounded tables of them. It is pure:
// time is an argument, in nanoseconds since 1970.
package rate
