// Package rehearsals is the room of organizations with which billing
// only rehearses: their clock, and what they would have sent. It
// stands on the unit of work and the tables.
package rehearsals
