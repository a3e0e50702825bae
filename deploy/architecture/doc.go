// Package architecture tests what linters can't: which rooms know each
// other, who writes a topic or a table, that maps name their bound, that
// pages are true. It reads source files and has only tests.
package architecture
