// Package front measures what requests cost at the front door, where nothing reads
// what was accepted: beside a naive server, and beside a Collector for OTLP.
package front
