// Package fault does to a server what can happen to one: its process stops, goes on, is killed, starts again; the network before it cuts,
// delays, swallows, dribbles or resets. A Server has a Network, a TCP proxy of this process that its clients use, and a Process where the
// server is ours; package testenv makes Servers of PostgreSQL, Kafka and Redis. Only tests import it.
package fault
