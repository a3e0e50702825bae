// Package snapshot reads one organization's rows in a snapshot, once it is
// the organization's turn, and finds the instant through which all replicas have booked the log. It stands on the tables; all rooms read through it.
package snapshot
