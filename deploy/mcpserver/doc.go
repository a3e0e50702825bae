// Package mcpserver serves assistants by the Model Context Protocol: it
// reads logs, errors and usage through the public API, with the rights of
// whom it is started for, and changes nothing.
package mcpserver
