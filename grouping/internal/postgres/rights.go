package postgres

import "github.com/weirlog/weir/shared/pg"

// rights are the privileges that serving needs.
var rights = pg.Rights{
	"error_groups":   "SELECT, INSERT, UPDATE, DELETE",
	"group_budgets":  "SELECT, INSERT, UPDATE, DELETE",
	"group_hashes":   "SELECT, INSERT, DELETE",
	"group_packages": "SELECT, INSERT, UPDATE, DELETE",
	"occurrences":    "SELECT, INSERT, UPDATE, DELETE",
}
