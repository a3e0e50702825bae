// Package mail sends messages by one mail server, and signs and reads the links
// by which anyone who holds one ends its kind without signing in (RFC 8058). It
// stores nothing, and does not know why anybody gets mail.
package mail
