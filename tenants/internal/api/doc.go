// Package api is what the API of all rooms is made with: who asks, changes, lists, problems, and what the rooms' OpenAPI
// descriptions have in common. It may touch requests and responses, but no table and no event.
package api
