// Package rules applies the rules of projects to the entries that come, and
// keeps, previews and restores them. It knows no routes, and no Kafka.
package rules
