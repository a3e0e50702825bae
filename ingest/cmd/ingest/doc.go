// Command ingest runs Weir's front door: it takes log entries in and finds them again. It turns flags and environment into the settings of
// ingest/app.
package main
