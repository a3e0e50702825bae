// Package server speaks Kafka's protocol: it answers requests about the
// topics of a store and the groups of a coordinator, as a cluster of one
// broker. It serves the versions that Apache Kafka 4 serves.
package server
