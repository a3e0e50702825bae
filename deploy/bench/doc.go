// Command bench measures Weir: throughput, fairness, the ledger and the log
// store alone, growth over a year. The work is in the packages of internal,
// which no other program can link, and in ingest/benchmark.
package main
