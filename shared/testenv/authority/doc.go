// Package authority issues certificates for tests: good ones, and such as are
// out of date or of somebody else. It writes to the folder that it is given.
package authority
