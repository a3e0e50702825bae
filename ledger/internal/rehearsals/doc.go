// Package rehearsals is the room of test organizations: their clock, and
// requests that are only rehearsed. It
// stands on the unit of work and the tables.
package rehearsals
