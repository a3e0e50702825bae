// Package testenv gives tests a real PostgreSQL, Kafka and Redis, and
// servers of the three that faults can be done to; a test for which none can
// be had fails with how to get it, and never skips. Only tests and deploy
// import it; README.md describes where a run takes them from.
//
//	url := testenv.Postgres(t)        // a database of the test's own
//	brokers := testenv.Kafka(t)       // a broker without topics
//	url := testenv.Redis(t)           // a database of the test's own
//	db := testenv.FaultyPostgres(t)   // the same on a server that may be paused, killed, restarted, cut off, …
//	cluster := testenv.FaultyKafka(t, 3)
//	cache := testenv.FaultyRedis(t)
package testenv
