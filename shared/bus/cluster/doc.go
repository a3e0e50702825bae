// Package cluster looks at brokers and topics as they are: who
// answers, how topics are set, where their logs end, who shares in a group,
// what the user may do. It retries nothing but to find a group's coordinator.
package cluster
