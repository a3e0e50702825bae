// Package http translates between HTTP and the service:
// error groups, and grouping's part of the OpenAPI document.
// It reads no table and decides nothing but who may read.
package http
