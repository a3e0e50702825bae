// Package telemetry lets a process be watched: a registry of metrics that is passed to whoever measures, and a listener of its own, apart
// from the public one, that shows them. The instruments live where they measure; their names are literals there, so that a search finds
// them. No label names an organization: what it does is on its own pages, not in ours.
package telemetry
