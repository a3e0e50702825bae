// Package ledger is the domain of quotas: how many bytes an organization may
// send in a period, how many it has sent, and the postings that prove it.
// Every change of a balance is a Transfer between two accounts of one
// organization and period, so a period's balances sum to zero; a correction is
// a further transfer. Periods follow from the calendar; no job opens or closes
// them. It does no I/O and has no clock.
package ledger
