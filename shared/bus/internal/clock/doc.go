// Package clock is the time that the bus measures by, and the delays between
// its retries. It touches nothing but the system's clock.
package clock
