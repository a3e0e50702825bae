// Package console shows the ledger to people: the quota of the period,
// charts of its use, the transfers behind it, and why requests were refused. It
// renders what the services return and reads no table.
package console
