// Package ingest is the domain of accepting log entries: what a valid
// body is, which request may pass, and how stored entries are found. It
// has no clock, no network and no database.
package ingest
