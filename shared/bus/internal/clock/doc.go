// Package clock is the time that the bus measures by, and how long it waits before it tries again.
package clock
