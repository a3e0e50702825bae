// Package people is the room of members: who they are and in which role, their invitations, and the codes by which somebody
// comes in. It may touch their tables, and what others say of organizations and of sessions.
package people
