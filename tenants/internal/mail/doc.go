// Package mail sends messages by one mail server. It stores nothing,
// and does not know why anybody gets mail.
package mail
