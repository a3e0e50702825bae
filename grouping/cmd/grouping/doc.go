// Command grouping runs Weir's error grouping, and shows how it
// would group errors. It turns flags and environment into the
// commands of grouping/app/command.
package main
