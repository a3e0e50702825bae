// Package horizon finds the instant through which all of the log is booked, by
// whichever replica: what is due by then can be done. It stands on the tables,
// and asks the brokers through a function.
package horizon
