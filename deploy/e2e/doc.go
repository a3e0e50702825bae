// Package e2e tests Weir's promises from outside: one scenario, only
// through HTTPS, on all in one process, on the same killed repeatedly, and
// on one process per service. In the end the ledger's debits must equal
// what was sent to the byte, every accepted entry must be read back once
// and byte for byte, and every error group must have its exact count.
package e2e
