// Package kafkatest gives tests a Kafka broker, and clusters with
// faults. Only tests and deploy import it; the README of testenv
// describes where a run takes them from.
package kafkatest
