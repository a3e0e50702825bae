// Package words holds the lists of words by which errors are read: the
// libraries of languages, the functions of systems, the words of messages.
// It imports nothing.
package words
