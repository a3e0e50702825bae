// Package follow reads partitions of a topic from given positions,
// wherever their leader is. It keeps no position and passes the records
// to its caller.
package follow
