// Package endpoint finds the databases and brokers of an installation
// from its services' settings, or those that a weir run has started. It
// connects to none of them.
package endpoint
