// Package measure is what the benchmarks share: the measured process,
// organizations to load it with, batches, samples of durations, resources of
// processes. It loads and observes an installation from outside alone.
package measure
