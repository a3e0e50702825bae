// Package broker talks to brokers: connections, leaders, the bounds of logs,
// and Fetch. It keeps no position, and its only retry is to ask another broker.
package broker
