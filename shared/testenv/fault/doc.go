// Package fault injects faults into a server: its process stops, continues, is
// killed, starts again; the network before it cuts, delays, swallows, dribbles
// or resets. A Server has a Network, a TCP proxy of this process that its
// clients use, and a Process where the server is ours; package testenv makes
// Servers of PostgreSQL, Kafka and Redis. Only tests import it.
package fault
