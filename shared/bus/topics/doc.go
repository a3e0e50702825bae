// Package topics creates the topics that are missing and waits until they can
// be used. It asks the brokers and changes nothing that exists.
package topics
