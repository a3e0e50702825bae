// Package bench measures an installation that it starts as a process
// of its own: accepted entries per second, costs of a batch,
// response times, and how long until balance, error group and
// read-back show what was accepted. The load comes from the
// measuring process, over HTTPS, through the public API alone.
package bench
