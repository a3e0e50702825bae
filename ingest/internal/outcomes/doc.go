// Package outcomes counts what becomes of requests, by organization, project, key and environment, until it is published; and the refusals by
// quota, of which the first of a key is published at once. It may touch the contract and what it is given to publish with.
package outcomes
