// Package groupingtest is a service with groups on a fresh database,
// without a broker, and errors to send. Only tests import it.
package groupingtest
