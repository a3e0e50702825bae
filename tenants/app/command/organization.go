package command

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
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

type createProject struct {
	installation
	Name         string `arg:"" help:"One application or service, such as Checkout."`
	Organization string `help:"Id of the organization that it belongs to (tenants organization list)." required:""`
}

// Help implements kong.HelpProvider.
func (createProject) Help() string {
	return `Logs are sent for a project, and grouped and searched by project. The id goes to standard output:

    project=$(tenants project create Checkout --organization "$organization")

Go on with "tenants key create".`
}

// Run creates the project.
func (c *createProject) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "project create", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		made, err := r.Registry.Projects.Create(ctx, request, c.Organization, c.Name)
		if err != nil {
			return explain(err, "organization", c.Organization)
		}
		answer(made.ID, "Created the project %q of organization %s.", made.Name, made.Organization)
		return nil
	})
}

type listProjects struct {
	installation
	Organization string `help:"Id of the organization (tenants organization list)." required:""`
}

// Run lists the projects, one a line: id, name.
func (c *listProjects) Run(ctx context.Context, logger *slog.Logger) error {
	return c.do(ctx, logger, "project list", func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		var after query.Position
		for {
			found, err := r.Registry.Projects.List(ctx, request.Caller, c.Organization, after, listPage)
			for _, p := range found {
				row(os.Stdout, p.ID, p.Name)
				after = query.Position{At: p.CreatedAt, ID: p.ID}
			}
			if err != nil || len(found) < listPage {
				return explain(err, "organization", c.Organization)
			}
		}
	})
}

// A decision is one of registry.Deletions about an id.
type decision func(*registry.Deletions, context.Context, unitofwork.Request, string) (tenants.Deletion, error)

// decide makes a decision, and prints the state that follows.
func (i installation) decide(ctx context.Context, logger *slog.Logger, command, what, id string, decide decision) error {
	return i.do(ctx, logger, command, func(ctx context.Context, r app.Services, request unitofwork.Request) error {
		deletion, err := decide(r.Registry.Deletions, ctx, request, id)
		if err != nil {
			return explain(err, what, id)
		}
		about := "All of it is gone by " + deletion.GoneBy.UTC().Format(time.RFC3339) + "."
		if deletion.State() == tenants.DeletionCancelledState {
			about = "It is there again, and its keys are in force."
		}
		answer(string(deletion.State()), "%s", about)
		return nil
	})
}

// A deleting command deletes what can be restored for a while.
type deleting struct {
	installation
	Grace time.Duration `help:"How long it can be restored before anything is erased." env:"WEIR_DELETION_GRACE" default:"0s"`
}

func (d deleting) delete(ctx context.Context, logger *slog.Logger, what, id string, decide decision) error {
	if d.Grace < 0 || d.Grace > tenants.MaxDeletionGrace {
		return fmt.Errorf("the grace is %s: use 0 to %s", d.Grace, tenants.MaxDeletionGrace)
	}
	within := func(all *registry.Deletions, ctx context.Context, request unitofwork.Request, id string) (tenants.Deletion, error) {
		return decide(all.Within(d.Grace), ctx, request, id)
	}
	return d.decide(ctx, logger, what+" delete", what, id, within)
}

type deleteOrganization struct {
	deleting
	ID string `arg:"" help:"Id of the organization (tenants organization list)."`
}

// Run deletes the organization.
func (c *deleteOrganization) Run(ctx context.Context, logger *slog.Logger) error {
	return c.delete(ctx, logger, "organization", c.ID, (*registry.Deletions).DeleteOrganization)
}

type restoreOrganization struct {
	installation
	ID string `arg:"" help:"Id of the organization."`
}

// Run brings the organization back.
func (c *restoreOrganization) Run(ctx context.Context, logger *slog.Logger) error {
	return c.decide(ctx, logger, "organization restore", "organization", c.ID, (*registry.Deletions).Restore)
}

type deleteProject struct {
	deleting
	ID string `arg:"" help:"Id of the project (tenants project list)."`
}

// Run deletes the project.
func (c *deleteProject) Run(ctx context.Context, logger *slog.Logger) error {
	return c.delete(ctx, logger, "project", c.ID, (*registry.Deletions).DeleteProject)
}

type restoreProject struct {
	installation
	ID string `arg:"" help:"Id of the project."`
}

// Run brings the project back.
func (c *restoreProject) Run(ctx context.Context, logger *slog.Logger) error {
	return c.decide(ctx, logger, "project restore", "project", c.ID, (*registry.Deletions).Restore)
}
