// Package programs builds programs of the repository, and runs them, for tests.
// It writes below bin/test, and knows no program.
package programs
