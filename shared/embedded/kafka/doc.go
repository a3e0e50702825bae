// Package kafka runs a Kafka broker inside the process, one node without
// replicas, that acknowledges what is on the disk and nothing else, and
// knows at its start whether the disk still has it. It uses one
// directory, which no other process may serve, and one port of this
// machine.
package kafka
