// Package kubernetes is Weir on a cluster, as a Helm chart, with tests of
// what the chart becomes, and of what a real API server says to it. It
// imports nothing of Weir.
package kubernetes
