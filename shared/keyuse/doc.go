// Package keyuse counts in memory how API keys are used, and has the
// counts published periodically. It may touch requests and
// principals; how to publish is given to it.
package keyuse
