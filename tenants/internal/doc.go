// Package schema is the module's schema: the migrations of all rooms, applied
// as one sequence in the order of their names. It imports no room, so that all
// of them and their tests can stand on it.
package schema
