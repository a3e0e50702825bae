// Package acls defines what each program may do at the brokers, and
// nothing more: access control lists of Apache Kafka, from the topics
// and groups of the contract. It asks no broker and does no I/O.
package acls
