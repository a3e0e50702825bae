// Command benchmark compares the bus with other Kafka clients of Go on
// one broker, in one run, and prints whether the bus reaches its goals
// (`make bench-bus`). It is its own module, and runs brokers in their
// own processes, so that only the clients' CPU is counted.
package main
