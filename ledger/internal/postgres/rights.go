package postgres

import "github.com/weirlog/weir/shared/pg"

// rights are what the server needs of each table. Bookings, links and
// statements never change.
var rights = pg.Rights{
	"answers":          "SELECT, INSERT, DELETE",
	"books":            "SELECT, INSERT, UPDATE, DELETE",
	"budgets":          "SELECT, INSERT, UPDATE, DELETE",
	"chains":           "SELECT, INSERT, UPDATE, DELETE",
	"checkpoint_rows":  "SELECT, INSERT, UPDATE, DELETE",
	"checkpoints":      "SELECT, INSERT, UPDATE, DELETE",
	"checked_ranges":   "SELECT, INSERT, UPDATE",
	"cuts":             "SELECT, INSERT, DELETE",
	"folded_transfers": "SELECT, INSERT, UPDATE", // removed with their book
	"grants":           "SELECT, INSERT, UPDATE, DELETE",
	"links":            "SELECT, INSERT, DELETE",
	"organizations":    "SELECT, INSERT, UPDATE, DELETE",
	"period_lines":     "SELECT, INSERT, UPDATE", // removed with their book
	"ranges":           "SELECT, INSERT, DELETE",
	"refusal_days":     "SELECT, INSERT, UPDATE, DELETE",
	"refusals":         "SELECT, INSERT, DELETE",
	"replays":          "SELECT, INSERT, UPDATE, DELETE",
	"seals":            "SELECT, INSERT, UPDATE, DELETE",
	"statements":       "SELECT, INSERT, DELETE",
	"tallies":          "SELECT, INSERT, UPDATE, DELETE",
	"terms":            "SELECT, INSERT, UPDATE",
	"transfers":        "SELECT, INSERT", // folded and removed by day
	"unpublished":      "SELECT, INSERT, UPDATE, DELETE",
	"usage_days":       "SELECT, INSERT, UPDATE, DELETE",
	"usage_hours":      "SELECT, INSERT, UPDATE, DELETE",
	"versions":         "SELECT, USAGE, UPDATE",
}
