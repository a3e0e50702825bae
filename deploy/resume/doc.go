// Package resume lets an installation go on after a restore, or with brokers
// that were made anew, so that no offset ever means two records. It compares
// positions with logs, shows what is read again and what is lost, and moves
// both where it is asked to; of a module's tables it touches those of the bus.
package resume
