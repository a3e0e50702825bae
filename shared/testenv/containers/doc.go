// Package containers starts PostgreSQL and Apache Kafka in containers,
// by testcontainers-go. Only the command backends imports it, since it stands
// on a large library that test binaries need not carry.
package containers
