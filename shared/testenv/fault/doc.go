// Package fault injects faults into a Server: its Process stops, continues,
// is killed and restarted; the Network before it, a TCP proxy, cuts, delays,
// holds back, slows down or resets connections. Only tests import it;
// kafkatest and postgrestest make Servers.
package fault
