// Package deferred reads in the log again what lanes have left behind. It keeps
// no position.
package deferred
