// Package fault injects faults into a Server: its Process stops, continues,
// is killed, starts again; the Network before it, a TCP proxy, cuts, delays,
// swallows, dribbles or resets. Only tests import it; kafkatest and
// postgrestest make Servers.
package fault
