// Package booking books what was accepted and what was refused, as the
// consumers read it, and counts it. It stands on unitofwork and the tables.
package booking
