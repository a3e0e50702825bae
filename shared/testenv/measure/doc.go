// Package measure is shared by the benchmarks: a generator of load, a wait,
// samples of durations, the resources of processes, a table of figures and
// goals. It knows nothing of what is measured.
package measure
