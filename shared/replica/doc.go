// Package replica has a standby of a module's database answer what is heavy to
// read. It answers as the primary would: a read waits until the standby has
// what the primary had when it was asked, and goes to the primary where it can't.
package replica
