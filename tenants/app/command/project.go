package command

import (
	"context"
	"log/slog"
	"os"

	"github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

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
