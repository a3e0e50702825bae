// Package kafka runs a Kafka broker inside the process, for development
// and tests: franz-go's kfake on a directory, as one broker without
// replicas, with what kfake lacks, such as retention, crash-safe
// compaction, a check of the log before it is served, and connections
// that can't bring the process down. It uses one directory, which no
// other process may serve, and leaves fsync to the operating system as
// Apache Kafka does.
package kafka
