// Package lanes decides which records of which lane a transaction
// applies, and which deferred lane is next. It does no I/O.
package lanes
