// Package process is what every main of Weir does: read the
// configuration from flags and environment, log, and end in order on a
// signal. It starts no module; its caller does.
package process
