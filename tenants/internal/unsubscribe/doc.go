// Package unsubscribe signs the links by which whoever holds a mail ends its
// kind without signing in (RFC 8058), and reads them back. It touches nothing:
// what follows from a link is decided elsewhere.
package unsubscribe
