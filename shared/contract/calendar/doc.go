// Package calendar computes the start and end of quota periods: the
// ledger charges by it, and ingest admits by it once the published
// period is over. It is as pure as the domains that use it.
package calendar
