// Package redistest gives tests databases of a Redis server, and servers that
// faults can be done to. Only tests and deploy import it; the README of testenv
// describes where a run takes them from.
package redistest
