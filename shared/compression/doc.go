// Package compression packs whole texts by zstd, to store them in
// tables. It imports nothing of Weir.
package compression
