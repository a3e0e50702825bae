// Package status keeps a consumer's progress and what it has stopped,
// for its readiness, lag and metrics. It does no I/O.
package status
