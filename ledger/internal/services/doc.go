// Package services puts the rooms of the ledger together: each concept has one,
// with a Service of its own. Processes and tests build all of them here.
package services
