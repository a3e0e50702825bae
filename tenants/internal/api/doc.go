// Package api is what the rooms' APIs share: callers, changes, lists,
// problems, and what describes their operations. It may
// read requests and write responses, but touch no table and no event.
package api
