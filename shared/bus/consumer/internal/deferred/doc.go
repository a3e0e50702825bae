// Package deferred reads lanes' deferred records from the log again. It
// keeps no position.
package deferred
