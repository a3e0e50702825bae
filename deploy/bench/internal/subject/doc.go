// Package subject starts and stops an installation that is measured, all of
// Weir in a process of its own, loads it with organizations and batches, and
// looks at their views. It does so from outside, by the public API.
package subject
