// Package keyfact gathers what a service sees of API keys, their uses and
// those sent in plaintext, and publishes it on weir.ingest.v1: it is the
// only writer of that topic. It uses only the requests, credentials and
// publisher given to it.
package keyfact
