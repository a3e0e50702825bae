// Package http serves ingest over HTTP: POST /v1/logs accepts entries,
// GET /v1/logs finds them. It translates between requests and the
// service, and touches neither Kafka nor Postgres.
package http
