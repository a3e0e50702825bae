// Command bench measures Weir: throughput, fairness, the ledger alone,
// growth over a year. The work is in the packages of internal, which no
// other program can link.
package main
