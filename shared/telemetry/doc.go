// Package telemetry makes a process observable: a registry of metrics that
// is passed to whatever measures, and a listener of its own, apart from the
// public one. It has no instruments: they are where they measure, by literal
// names that a search finds, and no label names an organization.
package telemetry
