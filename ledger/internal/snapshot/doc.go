// Package snapshot reads one organization's rows in a snapshot, once it is
// the organization's turn. It stands on the tables; all rooms read through it.
package snapshot
