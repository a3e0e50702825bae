// Package prune removes in the background what tables need not keep
// any more. Which rows those are is up to each Table: the package has
// the database and the loop, and no table.
package prune
