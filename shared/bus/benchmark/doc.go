// Command benchmark measures the bus beside the other Kafka clients of Go on
// one broker, in one run, and prints whether the bus reaches its goals
// (`make bench-bus`). It is a module of its own, and runs brokers in
// processes of their own, so that only the clients' CPU is counted.
package main
