// Package intake accepts a batch: who sends it, quota, log, receipt. It has no
// HTTP, Kafka or SQL of its own: it is given what it works with.
package intake
