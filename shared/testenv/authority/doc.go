// Package authority issues certificates for tests: valid ones, expired
// ones, and those of an unknown authority. It writes to the given folder.
package authority
