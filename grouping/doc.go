// Package grouping decides which errors are the same error.
//
// An Error goes in as it was sent: a type, a message and the lines of a stack trace in whatever form the sender's
// runtime prints them. A Grouper recognises the language, parses the frames, takes out everything that changes
// between two occurrences of one fault (line numbers, addresses, generated names, hashes of bundles, paths of hosts)
// and gives a Fingerprint: several hashes, the strictest first. Errors that share a joining hash are one group.
//
// The package is pure: no clock, no I/O, standard library only. The hashes are data: they are stored, so a change
// of any of them needs a new Version. A test pins them.
package grouping
