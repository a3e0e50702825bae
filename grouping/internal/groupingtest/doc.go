// Package groupingtest is a service with groups on a fresh database,
// without a broker. Only tests import it.
package groupingtest
