// Package lifecycle runs the loops of a process together and ends them
// together. It imports nothing of Weir.
package lifecycle
