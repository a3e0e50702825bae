// Package clock is the bus's time and the delays between its retries.
// It uses only the system's clock.
package clock
