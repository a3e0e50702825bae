// Package rebuild makes a ledger anew from what it was made of, the log and the
// decisions, beside the one that there is, and compares the two. Of that it
// only reads.
package rebuild
