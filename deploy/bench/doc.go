// Package bench measures an installation that it starts as a process of its own: how many entries a second are accepted,
// what a batch costs, how long an answer takes, and how long until balance, error group and read-back show what was
// accepted. The load comes from the measuring process, over HTTPS, through the public API.
package bench
