// Package prune deletes in the background what tables need not keep.
// Each Table decides which rows those are: the package has the database
// and the loop, and no table.
package prune
