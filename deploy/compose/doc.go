// Package compose is Weir on one machine, as a file for Docker Compose, with
// what Prometheus and Grafana need. The package has only tests: of what the
// file names and of the rights that it gives.
package compose
