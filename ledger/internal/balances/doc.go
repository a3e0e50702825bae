// Package balances reads what organizations have left, now and at any
// instant, the transfers behind it, how far the log is booked, and the statements of closed periods. It stands on snapshot and the tables.
package balances
