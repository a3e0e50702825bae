// Package ingest is the domain of accepting log entries: what a valid body is, which request may pass, and how kept
// entries are found again. It knows no clock, no network and no database.
package ingest
