// Package transaction carries out a consumer's transactions: it moves
// positions and has an effect, as often as it takes, and tells when not to go
// on. It does not choose what is applied.
package transaction
