// Package signin is the room of signing in: sessions, passwords, passkeys, the
// identity provider, recognized devices and failed attempts. It may touch their
// tables; members and policies are given to it.
package signin
