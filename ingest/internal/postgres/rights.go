package postgres

import "github.com/weirlog/weir/shared/pg"

// rights are what serving needs of each table: blocks never change.
var rights = pg.Rights{
	"blocks":        "SELECT, INSERT, DELETE", // DELETE: by erasures and merges
	"block_days":    "SELECT, INSERT, DELETE",
	"gap_charges":   "SELECT, INSERT, DELETE",
	"gap_runs":      "SELECT, INSERT, UPDATE, DELETE",
	"merge_counts":  "SELECT, INSERT, UPDATE, DELETE",
	"merged_blocks": "SELECT, INSERT, DELETE",
	"small_blocks":  "SELECT, INSERT, UPDATE, DELETE",
}
