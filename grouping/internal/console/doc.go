// Package console renders error groups for people: the
// list of an organization, and one group with its samples.
// It reads no table, only what the service returns.
package console
