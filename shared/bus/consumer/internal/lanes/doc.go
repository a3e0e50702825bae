// Package lanes decides which records of which lane a transaction applies, and
// whose turn it is among the lanes that are behind. It does no I/O.
package lanes
