// Package throughput measures how much an installation accepts, what a batch
// costs, and how long answers and views take. The load comes from the
// measuring process, only through the public API.
package throughput
