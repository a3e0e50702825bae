// Package resume lets an installation continue after a restore, or with
// recreated brokers, so that no offset ever means two records. It
// compares positions with logs, shows what is read again and what is
// lost, and moves both on request; of a module's tables it touches
// those of the bus.
package resume
