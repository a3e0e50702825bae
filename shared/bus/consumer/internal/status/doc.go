// Package status is how far a consumer is, and what it has stopped: for its
// readiness, its lag and its metrics. It asks nobody.
package status
