package command

import (
	"context"
	"log/slog"

	"github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

type createServiceToken struct {
	installation
	Name         string   `arg:"" help:"What holds it, such as Billing."`
	Organization string   `help:"Id of the organization that it acts for; * for all: an operator." required:""`
	Scope        []string `help:"What it may do, such as billing:read. Several: --scope a:b,c:d." required:""`
}

// Help implements kong.HelpProvider.
func (createServiceToken) Help() string {
	return `The token goes to standard output, alone and once: only its SHA-256 and four characters at each end are kept. Scopes that
this installation knows:

    tenants:admin   what an admin may do: projects, keys, tokens, invitations, and members other than owners
    audit:read      read the audit
    billing:read    read balances, statements and usage
    billing:write   change subscriptions, grant bytes

An operator, who may create organizations, is a token for "*" with tenants:admin.`
}

// Run creates the token.
func (c *createServiceToken) Run(ctx context.Context, logger *slog.Logger) error {
	wanted := registry.NewToken{Organization: c.Organization, Name: c.Name, Scopes: c.Scope}
	return c.do(ctx, logger, "service-token create", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		made, secret, err := r.Registry.Tokens.Issue(ctx, request, wanted)
		if err != nil {
			return explain(err, "organization", c.Organization)
		}
		answer(secret.Reveal(), "Created the service token %q (%s) of %s. This is the only time that it is shown:", made.Name, made.ID, made.Organization)
		return nil
	})
}

type revokeServiceToken struct {
	installation
	ID     string `arg:"" help:"Id of the token (tok_…): not the token itself."`
	Reason string `help:"Why, for those who look at this later."`
}

// Run revokes the token.
func (c *revokeServiceToken) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "service-token revoke", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		revoked, err := r.Registry.Tokens.Revoke(ctx, request, c.ID, c.Reason)
		if err != nil {
			return explain(err, "service token", c.ID)
		}
		answer(revoked.ID, "Revoked the service token %q. It works nowhere any more.", revoked.Name)
		return nil
	})
}
