// Package measure is shared by the benchmarks: a generator of load, samples
// of durations, the resources of processes, a table of figures and goals. It
// knows nothing of what is measured, and reads processes from /proc alone.
package measure
