// Package balances is what organizations have left, now and at any
// instant, with the transfers that it is the sum of, and how far the log
// is booked. It stands on snapshot and the tables.
package balances
