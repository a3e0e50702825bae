// Package doctor looks at an installation from its settings alone and reports
// what is wrong, with what to do about it: databases, brokers, topics,
// consumers, books, certificates, secrets, disk. It changes nothing, prints no
// secret and spends a bounded time on each check.
package doctor
