// Package ledger is the quota ledger: how many bytes an organization may send in a period, how many it has sent, and
// the postings that prove it.
//
// Every change of a balance is a Transfer between two accounts of one organization and one period, so the balances of
// a period always sum to zero. Nothing is ever changed or taken back: a correction is a further transfer. Periods follow
// from the calendar alone; no job opens or closes them.
package ledger
