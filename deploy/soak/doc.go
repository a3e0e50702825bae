// Package soak runs all of Weir through a year of believable days in
// minutes, by a clock of its own, and looks at what has grown: every
// table, topic and file, and the memory of the process. Whatever has a
// bound is flat once its bound is reached.
package soak
