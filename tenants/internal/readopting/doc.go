// Package readopting finds the organizations, projects and keys that a
// restore of an earlier hour has lost, and makes them exist again.
package readopting
