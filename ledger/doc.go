// Package ledger is the domain of quotas: how many bytes an organization may
// send in a period, how many it has sent, and the postings that prove it,
// each a Transfer between two accounts of one organization and period, whose
// balances sum to zero. It does no I/O and has no clock: periods follow from
// the calendar, and no job opens or closes them.
package ledger
