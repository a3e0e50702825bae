// Package rejected keeps what was refused in the last day of each API key, by
// code: how often, and a few samples. It gathers in memory and saves every few
// seconds, so that entries are accepted without a database.
package rejected
