// Command ledger-rebuild rebuilds the ledger from the log and the decisions,
// beside the present one, and compares the two. It fails where they
// differ, and changes nothing of the ledger.
package main
