// Package erasing lists what this module erases of what is deleted, of all
// concepts and in which order. It may touch the events and their audit;
// the other tables are named by the rooms.
package erasing
