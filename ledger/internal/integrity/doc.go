// Package integrity seals the chains, checks the books
// continuously, and verifies them on request. It stands on the tables,
// and reads the log through an interface.
package integrity
