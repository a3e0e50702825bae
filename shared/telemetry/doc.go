// Package telemetry makes a process observable: a registry of metrics
// that is passed to all that measures, and a separate listener apart from
// the public one. It has no instruments: they are where they measure, by
// literal names that a search finds, and no label names an organization.
package telemetry
