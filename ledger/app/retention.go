package app

import (
	"cmp"

	"github.com/weirlog/weir/ledger"
)

// RetentionConfig is how long books are kept.
type RetentionConfig struct {
	TransfersMonths  int `help:"For how many months each transfer is kept. What older ones came to is kept by period." env:"WEIR_LEDGER_TRANSFERS_MONTHS" default:"25"`
	UsageHoursMonths int `help:"For how many months usage is kept by the hour; by the day it is kept as long as transfers." env:"WEIR_LEDGER_USAGE_HOURS_MONTHS" default:"3"`
	BooksMonths      int `help:"For how many months after its end the books of a period are kept." env:"WEIR_LEDGER_BOOKS_MONTHS" default:"120"`
}

// kept returns the retention, with its default.
func (c RetentionConfig) kept() ledger.Retention {
	kept := ledger.DefaultRetention()
	return ledger.Retention{Hours: cmp.Or(c.UsageHoursMonths, kept.Hours),
		Transfers: cmp.Or(c.TransfersMonths, kept.Transfers), Books: cmp.Or(c.BooksMonths, kept.Books)}
}
