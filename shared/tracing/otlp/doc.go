// Package otlp decides which spans are kept, and exports them by OTLP over
// HTTP to a collector. Only the packages that assemble a service import
// it: those that make spans import tracing, which links no exporter.
package otlp
