// Command kafka-jars fetches the jars of Apache Kafka's broker, unless
// they are there. It prints their folder.
package main
