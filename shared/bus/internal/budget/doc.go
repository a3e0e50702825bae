// Package budget bounds the bytes in use. It does no I/O.
package budget
