// Package cursorkey keeps the key that a module signs the cursors of its lists with, so that a cursor outlives the process that made it. It
// touches one table, in the module's own schema.
package cursorkey
