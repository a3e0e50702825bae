// Package allinone is all of Weir in one process, for development, tests
// and small machines: the four modules behind the gateway on one HTTPS
// address, with its own certificate authority, PostgreSQL and Kafka
// broker unless others are given, and a demo organization. It starts the
// modules only by their app packages, and no module depends on it.
package allinone
