// Package e2e proves Weir's promises from outside: one scenario, through HTTPS alone, on three shapes of an
// installation: all in one process, the same killed again and again in the middle, and every service as a process of its own.
//
// The scenario knows what it sent. In the end the ledger's debits must equal that to the byte, every accepted entry must
// be read back once and byte for byte, and every error group must have its exact count.
package e2e
