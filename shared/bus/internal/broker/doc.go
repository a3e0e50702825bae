// Package broker speaks with brokers: connections, who leads what, the bounds of logs, and Fetch. It keeps no position and retries nothing
// but the question to another broker.
package broker
