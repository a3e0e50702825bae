// Package testenv is what tests on real servers share: waiting, repetition, a
// log. kafkatest and postgrestest provide the servers; README.md
// describes where a run takes these from.
//
//	url := postgrestest.URL(t)         // a database of the test's own
//	brokers := kafkatest.Brokers(t)    // a broker without topics
//	db := postgrestest.Faulty(t)       // the same on a server that may be paused, killed, restarted, cut off, …
//	cluster := kafkatest.Faulty(t, 3)
package testenv
