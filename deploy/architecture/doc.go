// Package architecture tests the rules of the source: what may
// import what, who writes what, that a domain does no I/O. It reads
// source files and has no code of its own.
package architecture
