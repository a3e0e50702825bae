// Package entryfield names the fields of a log entry, for ingest,
// which checks them, and grouping, which reads errors from them. It
// is as pure as the domains that use it.
package entryfield
