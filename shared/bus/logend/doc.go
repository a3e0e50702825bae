// Package logend moves the start and end of a topic's logs, so that
// offsets continue after the kept positions of a lost log. It talks to
// brokers and knows no consumer.
package logend
