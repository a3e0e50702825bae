// Package topics creates missing topics and waits until they can be
// used. It changes no existing topic.
package topics
