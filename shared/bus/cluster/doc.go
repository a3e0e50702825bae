// Package cluster looks at brokers and topics as they are: who answers, how topics are set, where their logs end, what the user may do. It changes
// nothing and retries nothing.
package cluster
