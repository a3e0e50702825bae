package command

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

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
