// Package measure is what the benchmarks share: the measured process, organizations to load it with, batches, samples of
// durations, and what processes use.
package measure
