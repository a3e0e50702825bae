// Package kafkatest gives tests a Kafka broker, and clusters that faults can be
// done to. Only tests and deploy import it; the README of testenv describes
// where a run takes them from.
package kafkatest
