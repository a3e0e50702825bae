// Package http translates between HTTP and the service: lists of error groups
// and single ones, and grouping's part of the OpenAPI document. It reads no
// table and decides nothing but who may ask.
package http
