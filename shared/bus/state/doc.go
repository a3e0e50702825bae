// Package state follows a compacted topic in memory, with a snapshot on disk
// for a fast start. It may use the protocol under internal, and no database.
package state
