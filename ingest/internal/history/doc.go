// Package history joins two stores of entries: PostgreSQL, where they land as blocks,
// and ClickHouse, to which they move. It moves them exactly once, and may import both.
package history
