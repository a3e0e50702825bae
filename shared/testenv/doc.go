// Package testenv is what tests on real servers share: waiting, repetition, a
// log. kafkatest, postgrestest and redistest provide the servers; README.md
// describes where a run takes these from.
//
//	url := postgrestest.URL(t)         // a database of the test's own
//	brokers := kafkatest.Brokers(t)    // a broker without topics
//	url := redistest.URL(t)            // a database of the test's own
//	db := postgrestest.Faulty(t)       // the same on a server that may be paused, killed, restarted, cut off, …
//	cluster := kafkatest.Faulty(t, 3)
//	cache := redistest.Faulty(t)
package testenv
