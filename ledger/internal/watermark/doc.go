// Package watermark finds the instant through which the log is booked by all
// replicas, so that what was due by then can be done. It stands on the tables
// and reads the log's end through a function.
package watermark
