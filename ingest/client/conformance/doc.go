// Package conformance holds clients against a server with faults. A client
// takes part by a program, its subject, which gets WEIR_BASE_URL,
// WEIR_API_KEY and WEIR_CA_FILE, and as arguments a number of entries and
// the seconds for which it tries to send a batch. It logs "entry 0",
// "entry 1" and so on, each tenth with an exception, flushes, closes its
// client, logs once more, and prints as JSON how many were accepted and
// dropped, by reason.
package conformance
