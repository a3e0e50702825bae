// Package doctor examines an installation from its settings and reports
// what is wrong, with the remedy: databases, brokers, topics,
// consumers, books, certificates, secrets, disk. It changes nothing,
// prints no secret and limits the time of each check.
package doctor
