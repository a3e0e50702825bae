// Package logrange reads a range of a partition once, or a topic from its
// end on, without a group or a position. It may use the protocol under internal, and no database.
package logrange
