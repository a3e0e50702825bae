// Package snapshot reads one organization's rows as they are at one
// instant, in the organization's turn. It stands on the tables; every room
// that answers a question reads through it.
package snapshot
