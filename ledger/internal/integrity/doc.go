// Package integrity makes the chains, checks the books all the
// time, and verifies them on request. It stands on the tables,
// and reads the log through an interface.
package integrity
