// Package shippers rewrites what log shippers send to Loki and to
// Elasticsearch as requests of OTLP in protobuf, which ingest/internal/otlp
// makes entries of. Both have one result for each thing that can be said.
//
// An entry of a Loki stream becomes a record:
//
//	its time                                       → time_unix_nano
//	its line                                       → body
//	level, severity or detected_level of its metadata or labels → severity_text
//	its structured metadata                        → attributes
//	the labels of its stream                       → attributes of the resource; env or environment: deployment.environment.name
//
// A document of Elasticsearch becomes a record:
//
//	@timestamp or timestamp, else receipt          → time_unix_nano
//	message, log or msg, the first that is a text  → body
//	log.level, level or severity                   → severity_text
//	error.type, error.message, error.stack_trace   → exception.type, .message, .stacktrace
//	service.environment                            → deployment.environment.name
//	its other fields                               → attributes
package shippers
