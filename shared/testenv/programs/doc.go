// Package programs builds programs of the repository for tests that run them.
// It writes below bin/test, and knows no program.
package programs
