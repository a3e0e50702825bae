// Package audit is the room of the audit: its lines, chained by
// hashes, their check against the events, its API and its pages.
// It may touch the table of the audit and read the events.
package audit
