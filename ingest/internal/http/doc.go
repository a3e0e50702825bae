// Package http serves ingest over HTTP: POST /v1/logs takes entries in, GET /v1/logs finds them again. It translates between requests and
// the service, and touches neither Kafka nor Postgres.
package http
