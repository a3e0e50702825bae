// Package console shows the ledger to people: one page, the allowance of the period and the
// transfers behind it. It translates what the service returns and reads no table.
package console
