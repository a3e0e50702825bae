// Package usage lists what became of an organization's requests, and explains
// those that were refused. It stands on snapshot and the tables.
package usage
