// Package erasing lists what this module erases, of all concepts, in order.
// It may touch the events and their audit; the rooms name the other tables.
package erasing
