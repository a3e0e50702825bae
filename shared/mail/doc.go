// Package mail hands messages to one mail server. It keeps nothing, and
// knows no reason why anybody gets mail.
package mail
