// Package api is what the rooms' APIs share: callers, changes, lists,
// problems, and the common part of their OpenAPI descriptions. It may touch
// requests and responses, but no table and no event.
package api
