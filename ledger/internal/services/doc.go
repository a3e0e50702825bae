// Package services wires the services of the ledger, one for each concept.
// Processes and tests build all of them here.
package services
