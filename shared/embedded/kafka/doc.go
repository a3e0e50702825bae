// Package kafka runs a Kafka broker inside the process, for development and
// tests: franz-go's kfake on a directory, as one broker without replicas. It
// adds what kfake leaves open: one process per directory, a check of the log
// before it is served (kfake cuts damaged segments short silently),
// retention that keeps the end of a partition, compaction while it serves that
// survives a crash (the files of compacted topics become at most twice what
// is in force, or 32 MiB), and connections that cannot bring the process
// down. Like Apache Kafka it leaves fsync to the operating system: a killed
// process loses nothing, a power cut may.
package kafka
