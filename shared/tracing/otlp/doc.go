// Package otlp decides which spans are kept, and exports them by OTLP over HTTP
// to a collector. Only what assembles a service imports it: what makes spans
// imports tracing, which links no exporter.
package otlp
