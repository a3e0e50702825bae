// Package architecture tests the rules of the source: who may import
// what, who writes what, that a domain does no I/O. It reads source
// files and has only tests.
package architecture
