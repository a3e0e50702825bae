// Package loadgen makes believable traffic and sends it through the public API alone: several services on several
// hosts, all levels, errors in the seven languages whose stack traces Weir knows.
package loadgen
