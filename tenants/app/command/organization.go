package command

import (
	"context"
	"log/slog"
	"os"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// listPage is how many items are read at once.
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
	return c.do(ctx, logger, "organization create", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		made, err := r.Registry.Organizations.Create(ctx, request, c.Name, c.Tier)
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

// Help implements kong.HelpProvider.
func (listOrganizations) Help() string {
	return `One a line: id, the tier that it began with, and name. What an organization subscribes to now is in the console, at
GET /v1/organizations, and at GET /v1/organizations/{organization}/subscription of the ledger.`
}

// Run lists the organizations.
func (c *listOrganizations) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "organization list", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		var after query.Position
		for {
			found, err := r.Registry.Organizations.List(ctx, request.Caller, after, listPage)
			for _, o := range found {
				row(os.Stdout, o.ID, o.Tier, o.Name)
				after = query.Position{At: o.CreatedAt, ID: o.ID}
			}
			if err != nil || len(found) < listPage {
				return err
			}
		}
	})
}

type allowPasswords struct {
	installation
	Organization string `arg:"" help:"Id of the organization."`
}

// Help implements kong.HelpProvider.
func (allowPasswords) Help() string {
	return `For an organization that has switched passwords off and whose owners can't sign in any more: their passkeys are lost, the
console has another address, or the identity provider is gone. Old passwords work again; members without one get a link
from "tenants reset-link". It stands in the audit log of the organization.`
}

// Run switches passwords on.
func (c *allowPasswords) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "organization allow-passwords", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		if err := r.Registry.Policies.AllowPasswords(ctx, request, c.Organization); err != nil {
			return explain(err, "organization", c.Organization)
		}
		answer(c.Organization, "Members of the organization may sign in with passwords.")
		return nil
	})
}
