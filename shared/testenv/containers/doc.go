// Package containers starts PostgreSQL and Apache Kafka in containers,
// by testcontainers-go. Only the command backends imports it, since
// test binaries don't need this large library.
package containers
