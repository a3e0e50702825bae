// Package group coordinates consumer groups by Kafka's classic protocol:
// who is a member, which member has which partitions, and the offsets
// that a group has committed. Members live in memory, and rejoin after a
// restart; offsets are in a compacted log.
package group
