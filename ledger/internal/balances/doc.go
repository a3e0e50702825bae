// Package balances reads what organizations have left, now and at any
// instant, the transfers behind it, and how far the log is booked. It stands on snapshot and the tables.
package balances
