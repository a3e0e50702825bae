// Package redistest gives tests databases of a Redis server, and
// servers with faults. Only tests and deploy import it; the README of
// testenv describes where a run takes them from.
package redistest
