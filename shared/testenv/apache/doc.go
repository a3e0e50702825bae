// Package apache runs a real Apache Kafka node on this machine, for tests and measurements without
// a container engine: the published broker jars, fetched once by Maven, on the machine's Java. It
// imports nothing of Weir.
package apache
