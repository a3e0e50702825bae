// Command ledger-rebuild makes the ledger anew from the log and the decisions,
// beside the one that there is, and compares the two. It fails where they
// differ, and changes nothing of the ledger.
package main
