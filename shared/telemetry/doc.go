// Package telemetry makes a process observable: a registry of metrics that is
// passed to whatever measures, and a listener of its own, apart from the
// public one. The instruments are where they measure; their names are literals
// there, so that a search finds them. No label names an organization: what it
// does is on its own pages, not in ours.
package telemetry
