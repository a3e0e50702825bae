// Package booking books accepted logs, refusals and request counts for the
// consumers. It stands on unitofwork and the tables.
package booking
