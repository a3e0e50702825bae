// Package people is the room of members: their roles, their
// invitations, and the codes that admit people. It may touch
// their tables; organizations and sessions are given to it.
package people
