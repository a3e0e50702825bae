// Package loadgen makes realistic traffic: several services on several
// hosts, all levels, errors in the seven languages whose stack traces
// Weir parses. It sends only through the public API.
package loadgen
