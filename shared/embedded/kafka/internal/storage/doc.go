// Package storage keeps the broker's topics and their logs on a disk. It
// touches one directory alone.
//
//	topics.json                                 the topics and their settings
//	producers                                   up to which producer ids are given
//	checkpoint.json                             where each log began and ended when last looked at
//	partitions/<topic>-<n>/<first offset>.dat   sealed batches, in order, without gap
//	partitions/<topic>-<n>/synced               up to which offset they were synced
//	damaged/                                    what Repair has taken out of the logs
package storage
