// Package allinone is all of Weir in one process, for development, tests and
// small machines: the four modules behind the gateway on one HTTPS address,
// with a certificate authority, PostgreSQL and Kafka broker of its own
// unless others are given, and a demo organization. It starts the modules by
// their app packages alone, and no module depends on it.
package allinone
