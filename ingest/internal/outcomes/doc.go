// Package outcomes counts the outcomes of requests, by organization,
// project, key and environment, until they are published; the first
// refusal by quota of a key is published at once. It may touch the
// contract and the publisher given to it.
package outcomes
