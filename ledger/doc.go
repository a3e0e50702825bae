// Package ledger is the domain of quotas: the bytes an organization may send
// in a period, those it has sent, and the postings that prove it, each a
// Transfer between two accounts of one organization and period, whose balances
// sum to zero. It does no I/O and has no clock: periods follow from
// the calendar, and no job opens or closes them.
package ledger
