// Package measure is shared by the benchmarks: the measured process,
// organizations to load it with, batches, samples of durations, resources
// of processes. It loads and observes an installation only from outside.
package measure
