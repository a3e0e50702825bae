package command

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

type createKey struct {
	installation
	Name        string              `arg:"" help:"Where the key will be, such as \"checkout, pods in Frankfurt\"."`
	Project     string              `help:"Id of the project that it sends logs for (tenants project list)." required:""`
	Environment tenants.Environment `help:"Where its holder runs: prod, staging or dev." required:""`
	ExpiresAt   time.Time           `help:"When it ends, such as 2027-01-31T00:00:00Z. Without it the key does not expire." format:"2006-01-02T15:04:05Z07:00"`
}

// Help implements kong.HelpProvider.
func (createKey) Help() string {
	return `The key goes to standard output, alone and once: only its SHA-256 and four characters at each end are kept. It is in
force everywhere when the command ends. Put it where it belongs at once, not into your shell's history:

    tenants key create checkout --project "$project" --environment prod | vault kv put secret/checkout weir_api_key=-`
}

// Run creates the key.
func (c *createKey) Run(ctx context.Context, logger *slog.Logger) error {
	wanted := tenants.IssueAPIKey{Project: c.Project, Environment: c.Environment, Name: c.Name, ExpiresAt: c.ExpiresAt.UTC()}
	return c.do(ctx, logger, "key create", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		made, secret, err := r.Keys.Issue(ctx, request, wanted)
		if err != nil {
			return explain(err, "project", c.Project)
		}
		answer(secret.Reveal(), "Created the API key %q (%s) of project %s for %s. This is the only time that it is shown:",
			made.Name, made.ID, made.Project, made.Environment)
		return nil
	})
}

type revokeKey struct {
	installation
	ID     string `arg:"" help:"Id of the key (key_…): not the key itself."`
	Reason string `help:"Why, for those who look at this later."`
}

// Run revokes the key.
func (c *revokeKey) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "key revoke", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		revoked, err := r.Keys.Revoke(ctx, request, c.ID, c.Reason)
		if err != nil {
			return explain(err, "API key", c.ID)
		}
		answer(revoked.ID, "Revoked the API key %q. It works nowhere any more.", revoked.Name)
		return nil
	})
}
