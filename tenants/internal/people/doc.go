// Package people is the room of members: their roles, their invitations, and
// the codes that admit somebody. It may touch their tables; what it needs of
// organizations and sessions is given to it.
package people
