// Package erasing says what this module erases of what is deleted, of all concepts together and in which order. It may touch the events
// and their audit; of the tables it knows what the rooms name.
package erasing
