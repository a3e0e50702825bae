// Package keys is the room of API keys: their issue, rotation, leaks and last use, the API and the pages of them. It may touch
// the tables of keys, and what others tell it of projects and policies.
package keys
