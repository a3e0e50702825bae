// Package http translates between HTTP and the service:
// error groups, and what describes them.
// It reads no table and decides nothing but who may read.
package http
