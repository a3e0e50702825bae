// Package kubernetes is Weir on a cluster, as a Helm chart, with tests of the
// chart's objects, also at a real API server. It imports nothing of Weir.
package kubernetes
