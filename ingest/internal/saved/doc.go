// Package saved keeps searches that people have named, and evaluates the
// alerts on them: who may see and change what, when an alert is due, and
// what is told of it.
package saved
