// Package changes limits how often an organization may change something,
// over the API and in the console together, since each change takes the one
// lock to append and stays in the events forever. It counts in memory.
package changes
