// Package terminal writes what others have sent so that a terminal shows it
// and never obeys it: text, tables that fit, and coloured levels.
package terminal
