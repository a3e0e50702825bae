// Package disktest is a file system that fails as a test says. It is a
// wrapper and touches what it wraps.
package disktest
