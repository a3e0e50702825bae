// Package soak runs all of Weir through a year of realistic days in
// minutes, by its own clock, and measures what has grown: every table,
// topic and file, and the process's memory. Whatever has a bound must
// be flat once it has reached it.
package soak
