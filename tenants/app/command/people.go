package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// links are addresses of the console.
type links struct {
	ConsoleOrigin string `help:"Where people reach the console, such as https://weir.example." env:"WEIR_CONSOLE_ORIGIN" default:"https://localhost:8443"`
}

func (l links) to(path string, code tenants.Secret) string {
	return app.Link(l.ConsoleOrigin, path, code)
}

type ownerLink struct {
	installation
	links
}

// Help implements kong.HelpProvider.
func (ownerLink) Help() string {
	return `The link goes to standard output, alone and once: anyone who opens it becomes the first owner. It works for 24 hours, and any
earlier link is void. Where there are members already, they invite others in the console; an owner who can't sign in
any more gets a link from "tenants reset-link".`
}

// Run prints a link for the first owner.
func (c *ownerLink) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "owner-link", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		code, expires, err := r.People.Codes.IssueOwnerCode(ctx, request)
		if errors.Is(err, tenants.ErrHasMembers) {
			return fmt.Errorf("%w, who invite others: see tenants owner-link --help", err)
		}
		if err != nil {
			return err
		}
		answer(c.to(app.WelcomePath, code), "Anyone who opens this link first becomes the owner. It works until %s:", expires.Format(timeForm))
		return nil
	})
}

type resetLink struct {
	installation
	links
	Email string `arg:"" help:"Address with which the member signs in."`
}

// Help implements kong.HelpProvider.
func (resetLink) Help() string {
	return `The link goes to standard output, alone and once: anyone who opens it sets the member's password, which ends all of the member's
sessions. It works for 24 hours, and any earlier link is void. Owners and admins can do the same in the console.`
}

// Run prints a link to set a member's password.
func (c *resetLink) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "reset-link", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		member, code, err := r.People.Codes.IssueResetFor(ctx, request, c.Email)
		if err != nil {
			return explain(err, "member", c.Email)
		}
		answer(c.to(app.ResetPath, code), "Give this link to %s (%s) and nobody else. It works until %s:", member.Name, member.Email,
			member.Reset.ExpiresAt.Format(timeForm))
		return nil
	})
}

// timeForm is how a time is printed.
const timeForm = "2006-01-02 15:04 UTC"

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
