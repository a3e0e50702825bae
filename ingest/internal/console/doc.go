// Package console is the page of the log store: an organization's entries,
// newest first. It renders what the service returns and reads no table.
package console
