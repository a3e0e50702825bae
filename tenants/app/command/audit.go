package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
)

type verifyAudit struct {
	DatabaseURL  httpapi.Secret `help:"URL of the Postgres database of the installation." env:"WEIR_DATABASE_URL"`
	Organization string         `help:"Id of one organization; * for what concerns the installation itself. Without it: all."`
}

// Help implements kong.HelpProvider.
func (verifyAudit) Help() string {
	return `Every line of the audit has a hash of itself and the hash of the line before. This reads all lines, computes the hashes
again, and compares each line with the event that it tells of: it finds lines that were edited, removed, added, exchanged
or cut off. Where the oldest lines were removed because of their age, it begins with the hash of the last of these. For each
organization it prints its id, how many lines there are, the hash of the last, and how many are gone; keep these somewhere
else, and nobody can rewrite audit and events together without your noticing. It changes nothing, and ends with status 1 where something was found.`
}

// errTampered means that an audit was altered.
var errTampered = errors.New("the audit was tampered with")

// Run verifies and prints.
func (c *verifyAudit) Run(ctx context.Context, _ *slog.Logger) error {
	var found error
	err := app.CheckAudits(ctx, c.DatabaseURL, c.Organization, func(organization string, check tenants.AuditCheck) {
		row(os.Stdout, organization, check.Lines, check.Head, check.Gone)
		for _, fault := range check.Faults {
			fmt.Fprintf(os.Stderr, "%s: %s\n", organization, fault)
			found = errTampered
		}
	})
	return errors.Join(explain(err, "audit of organization", c.Organization), found)
}
