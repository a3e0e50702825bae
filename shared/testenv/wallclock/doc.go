// Package wallclock tells tests what the machine's clock reads once
// somebody has set it. It touches nothing.
package wallclock
