// Package dirlock locks the data directory of an embedded server for one
// process. It touches the file lock in that directory alone.
package dirlock
