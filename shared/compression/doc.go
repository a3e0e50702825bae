// Package compression packs whole texts by zstd, for what is kept in tables. It
// stands on nothing.
package compression
