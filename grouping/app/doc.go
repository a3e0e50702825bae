// Package app wires grouping into one process. It holds settings
// and start-up order, and decides nothing about errors.
package app
