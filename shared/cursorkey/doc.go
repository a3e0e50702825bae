// Package cursorkey keeps the key that signs the cursors of a module's
// lists, so that a cursor outlives its process; keys for other signatures
// may be derived from it. It uses one table, in the module's own schema.
package cursorkey
