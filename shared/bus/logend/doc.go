// Package logend moves where the logs of a topic begin and end, so that
// offsets go on behind positions that are kept of a log which is gone. It
// speaks to brokers and knows no consumer.
package logend
