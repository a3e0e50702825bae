// Package allinone is all of Weir in one process: the four modules behind the gateway on one HTTPS address, with a
// certificate authority, a PostgreSQL and a Kafka broker of its own unless others are given, and a demo organization
// to start with. It is for development, tests and small machines; nothing in a module knows of it.
package allinone
