// Package compose is Weir on one machine, as a file for Docker Compose,
// with what Prometheus and Grafana need. The package has only tests, of
// the file's contents and of the rights that it gives.
package compose
