// Package changes stands before what an organization may change, over the API
// and in the console together: it limits how often, since each change takes the
// one lock to append, and reads bodies first. It counts in memory.
package changes
