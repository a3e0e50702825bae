// Package audit is the room of the audit: who decided what, chained by
// hashes, its check against the events, its API and its pages. It may touch
// the table of the audit and read the events.
package audit
