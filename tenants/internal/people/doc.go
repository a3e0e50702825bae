// Package people is the room of members: their roles, their invitations, and the codes by which somebody comes in. It may touch their
// tables; what it needs of organizations and sessions is given to it.
package people
