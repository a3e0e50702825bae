// Package endpoint finds the databases and brokers of an installation from the
// settings that its services take, or what a weir run has started. It connects
// to none of them.
package endpoint
