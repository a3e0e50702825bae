// Package otlp translates logs of OpenTelemetry (OTLP/HTTP 1.x, protobuf and
// JSON) to bodies of POST /v1/logs, and answers to those of the protocol.
//
// A record becomes an entry:
//
//	time_unix_nano, else observed_time_unix_nano, else receipt → timestamp
//	severity_number, else severity_text, else info             → level
//	body: a string; of a map its message or msg; else as JSON  → message
//	a body that is no string                                   → metadata.body
//	deployment.environment.name or deployment.environment      → environment
//	exception.type, .message, .stacktrace of the record        → error
//	its other attributes                                       → metadata
//	those of the resource                                      → metadata; where the record has that name: metadata.resource
//	scope, trace_id, span_id, event_name, severity_text        → metadata
//
// Flags, schema URLs and counts of dropped attributes are left out.
package otlp
