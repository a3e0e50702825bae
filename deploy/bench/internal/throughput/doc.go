// Package throughput measures an installation that it starts as a separate
// process: accepted entries per second, costs of a batch, response
// times, and how long until balance, error group and read-back show the
// accepted entries. The load comes from the measuring process, over
// HTTPS, only through the public API.
package throughput
