// Package budget bounds the bytes that are under way. It does no I/O.
package budget
