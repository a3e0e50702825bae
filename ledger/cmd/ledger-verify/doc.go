// Command ledger-verify checks the books of Weir's quota ledger and fails where
// an invariant does not hold. It only reads.
package main
