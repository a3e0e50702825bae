package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Commands are the commands of the program tenants.
type Commands struct {
	Serve serve `cmd:"" default:"withargs" help:"Serve the API and the console. What happens where no command is given."`

	OwnerLink ownerLink `cmd:"" help:"Print a link by which somebody becomes the first owner, where nobody is a member yet."`
	ResetLink resetLink `cmd:"" help:"Print a link by which a member sets another password."`

	Organization struct {
		Create createOrganization `cmd:"" help:"Create an organization and print its id."`
		List   listOrganizations  `cmd:"" help:"List the organizations."`

		Delete  deleteOrganization  `cmd:"" help:"Delete an organization with all that it has."`
		Restore restoreOrganization `cmd:"" help:"Bring back an organization that was deleted, as long as nothing is erased."`

		AllowPasswords allowPasswords `cmd:"" help:"Let the members of an organization sign in with passwords again."`
	} `cmd:"" help:"Organizations: who everything else belongs to."`

	Project struct {
		Create createProject `cmd:"" help:"Create a project and print its id."`
		List   listProjects  `cmd:"" help:"List the projects of an organization."`

		Delete  deleteProject  `cmd:"" help:"Delete a project with its logs and errors."`
		Restore restoreProject `cmd:"" help:"Bring back a project that was deleted, as long as nothing is erased."`
	} `cmd:"" help:"Projects: the applications and services of an organization."`

	Key struct {
		Create createKey `cmd:"" help:"Create an API key and print it: once, here."`
		Revoke revokeKey `cmd:"" help:"Revoke an API key: it works nowhere any more."`
	} `cmd:"" help:"API keys, with which client services send logs."`

	ServiceToken struct {
		Create createServiceToken `cmd:"" help:"Create a service token and print it: once, here."`
		Revoke revokeServiceToken `cmd:"" help:"Revoke a service token: it works nowhere any more."`
	} `cmd:"" help:"Service tokens, with which services such as billing call the API."`

	Audit struct {
		Verify verifyAudit `cmd:"" help:"Verify the audit against the events."`
	} `cmd:"" help:"The audit: who decided what, when and from where."`
}

// An installation is what serving processes share:
// commands use it beside them, or without any.
type installation struct {
	service.Servers `embed:""`
}

// do runs a command's function.
func (i installation) do(ctx context.Context, logger *slog.Logger, command string,
	fn func(ctx context.Context, services app.Services, request unitofwork.Request) error) error {
	return app.Operate(ctx, i.Servers, quiet(logger), func(ctx context.Context, r app.Services) error {
		return fn(ctx, r, unitofwork.AtTheServer("tenants "+command+", run by "+app.CurrentUser()))
	})
}

// quiet logs only warnings and errors.
func quiet(logger *slog.Logger) *slog.Logger {
	return slog.New(warnings{logger.Handler()})
}

type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// answer prints a result alone on standard output,
// for scripts, and notes on standard error.
func answer(result, about string, args ...any) {
	fmt.Fprintf(os.Stderr, about+"\n", args...)
	fmt.Fprintln(os.Stdout, result)
}

// row prints one item of a list, tab-separated.
func row(w io.Writer, parts ...any) {
	for i, part := range parts {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, part)
	}
	fmt.Fprintln(w)
}

type serve struct {
	app.Config `embed:""`
}

// Run serves until ctx ends.
func (c *serve) Run(ctx context.Context, logger *slog.Logger) error {
	c.Output = os.Stdout
	tenants, err := app.New(ctx, c.Config, logger)
	if err != nil {
		return err
	}
	return tenants.Run(ctx)
}

// explain adds a remedy to an error about
// the thing with an id, or about values.
func explain(err error, thing, id string) error {
	var invalid tenants.Invalid
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return fmt.Errorf("there is no %s %q", thing, id)
	case errors.Is(err, tenants.ErrBegun):
		return fmt.Errorf("%s %q is being erased, or is gone: nothing brings it back", thing, id)
	case errors.As(err, &invalid):
		return errors.New(strings.Join(fixes(invalid), "\n"))
	}
	return err
}

func fixes(invalid tenants.Invalid) (texts []string) {
	for _, fault := range invalid {
		texts = append(texts, fault.Detail+" "+fault.Fix)
	}
	return texts
}
