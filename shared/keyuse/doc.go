// Package keyuse counts the uses of API keys in memory, and has the
// counts published periodically. It handles requests and principals,
// and publishes by a function given to it.
package keyuse
