// Package apache runs a real Apache Kafka node on this machine, for
// tests and measurements without a container engine: the published
// jars, fetched once by Maven, on the machine's Java. Of Weir it
// imports only the packages that provide files and ports to tests.
package apache
