// Package rules applies the rules of projects to the entries that come, and
// keeps, previews and restores them. It knows no HTTP and no Kafka.
package rules
