package command

import (
	"context"
	"log/slog"
	"os"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

// listPage is how many things are asked for at once.
const listPage = 1000

type createOrganization struct {
	installation
	Name string       `arg:"" help:"What people call it, such as \"Acme Ltd.\"."`
	Tier tenants.Tier `help:"What it has subscribed to: indie, bootstrapper, compliance or scale." required:""`
}

// Help implements kong.HelpProvider.
func (createOrganization) Help() string {
	return `The id goes to standard output, so a script can keep it:

    organization=$(tenants organization create "Acme Ltd." --tier scale)

What a tier grants is in the README of the ledger. Go on with "tenants project create".`
}

// Run creates the organization.
func (c *createOrganization) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "organization create", func(ctx context.Context, r *registrar.Registrar, request registrar.Request) error {
		made, err := r.CreateOrganization(ctx, request, c.Name, c.Tier)
		if err != nil {
			return explain(err, "organization", "")
		}
		answer(made.ID, "Created the organization %q on tier %s.", made.Name, made.Tier)
		return nil
	})
}

type listOrganizations struct {
	installation
}

// Run lists the organizations, one a line: id, tier, name.
func (c *listOrganizations) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "organization list", func(ctx context.Context, r *registrar.Registrar, request registrar.Request) error {
		var after postgres.Position
		for {
			found, err := r.Organizations(ctx, request.Caller, after, listPage)
			for _, o := range found {
				row(os.Stdout, o.ID, o.Tier, o.Name)
				after = postgres.Position{At: o.CreatedAt, ID: o.ID}
			}
			if err != nil || len(found) < listPage {
				return err
			}
		}
	})
}
