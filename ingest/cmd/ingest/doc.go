// Command ingest runs Weir's front door: it accepts log entries and finds them
// again. It turns flags and environment into the settings of ingest/app.
package main
