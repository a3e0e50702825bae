// Package measure is shared by what sends load and measures: a generator of
// load, waits, samples of durations, the resources of processes, a table of
// figures and goals. It knows nothing of what is measured.
package measure
