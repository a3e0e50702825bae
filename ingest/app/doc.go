// Package app wires ingest into one process: the intake, which needs
// no database, and the log store. It holds settings and start-up
// order, and decides nothing about requests.
package app
