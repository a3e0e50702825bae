package postgres

import "github.com/weirlog/weir/shared/pg"

// rights are what serving needs of each table. What is booked, linked and stated never changes.
var rights = pg.Rights{
	"answers":          "SELECT, INSERT, DELETE",
	"books":            "SELECT, INSERT, UPDATE, DELETE",
	"budgets":          "SELECT, INSERT, UPDATE, DELETE",
	"chains":           "SELECT, INSERT, UPDATE, DELETE",
	"checked_ranges":   "SELECT, INSERT, UPDATE",
	"cuts":             "SELECT, INSERT, DELETE",
	"folded_transfers": "SELECT, INSERT, UPDATE", // go with their book
	"grants":           "SELECT, INSERT, UPDATE, DELETE",
	"links":            "SELECT, INSERT, DELETE",
	"organizations":    "SELECT, INSERT, UPDATE, DELETE",
	"period_lines":     "SELECT, INSERT, UPDATE", // go with their book
	"published_terms":  "SELECT, INSERT, UPDATE",
	"ranges":           "SELECT, INSERT, DELETE",
	"refusals":         "SELECT, INSERT, DELETE",
	"replays":          "SELECT, INSERT, UPDATE, DELETE",
	"seals":            "SELECT, INSERT, UPDATE, DELETE",
	"statements":       "SELECT, INSERT, DELETE",
	"tallies":          "SELECT, INSERT, UPDATE, DELETE",
	"transfers":        "SELECT, INSERT", // go by the day, once they are folded
	"unpublished":      "SELECT, INSERT, UPDATE, DELETE",
	"usage_days":       "SELECT, INSERT, UPDATE, DELETE",
	"usage_hours":      "SELECT, INSERT, UPDATE, DELETE",
	"versions":         "SELECT, USAGE, UPDATE",
}
