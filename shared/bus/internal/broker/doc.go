// Package broker talks to brokers: connections, leaders, the
// bounds of logs, and Fetch. It keeps no position and retries
// nothing but the question to another broker.
package broker
