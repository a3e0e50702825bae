// Package retention removes what the rooms' tables have kept long enough: which rows, and when. It
// may touch all of these tables, but not the audit and the events, whose retention is package
// audit's.
package retention
