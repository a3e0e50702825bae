//go:build !apache

package bus_test

// clusterFaults need three nodes of Apache Kafka, see cluster_apache_test.go.
var clusterFaults []faultTest
