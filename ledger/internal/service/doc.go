// Package service holds what the ledger does, one method of a Service each, and the Checker of its
// books. It stands on the domain and its tables; the bus, HTTP and the console call it and decide
// nothing.
package service
