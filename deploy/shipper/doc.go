// Package shipper sends lines of files and streams as log entries.
package shipper
