// Package keys is the room of API keys: issue, rotation,
// leaks, last use, their API and pages. It may touch the
// tables of keys; projects and policies are given to it.
package keys
