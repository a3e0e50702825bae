// Command benchmark measures the bus beside the other Kafka clients of Go
// on one broker, in one run, and prints whether the bus reaches its
// goals. `make bench-bus` runs it on the embedded broker and on Apache
// Kafka, with a PostgreSQL. Brokers run in processes of their own, so
// that only the clients' CPU is counted.
package main
