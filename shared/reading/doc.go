// Package reading gives organizations turns at reading a module's database: one that reads without
// pause has half of the places at most and a bounded line, and others need not wait behind it. It
// opens no connection and asks nothing itself.
package reading
