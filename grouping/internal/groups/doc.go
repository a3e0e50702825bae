// Package groups holds the use cases of grouping, one method
// of a Service each. It stands on the domain and its tables;
// the bus, HTTP and the console call it and decide nothing.
package groups
