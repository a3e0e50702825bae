// Package cluster reads the state of brokers and topics: which brokers
// answer, how topics are set, where their logs end, who is in a group,
// what the user may do. It retries only to find a group's coordinator.
package cluster
