// Package signin is the room of signing in: sessions, passwords, passkeys, the identity provider, the devices that are known
// again, and failed attempts. It may touch the tables of these, and asks others for members and policies.
package signin
