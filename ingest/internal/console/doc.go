// Package console is the page of the log store: what an organization has sent, newest first. It translates what the service returns and
// reads no table.
package console
