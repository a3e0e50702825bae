// Package transaction runs a consumer's transactions: each moves
// positions and has an effect, is retried as needed, and reports when
// to stop. It does not choose what is applied.
package transaction
