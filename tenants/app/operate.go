package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// inForceWait is how long a command waits until a credential
// is in force: longer than a request, as no client waits.
const inForceWait = 10 * time.Second

// Services are those of the rooms.
type Services struct {
	People   people.Services
	Registry registry.Services
	Keys     *keys.Service
}

// Operate runs fn beside the serving processes, on the same
// database and broker: its decisions are audited, published
// and in force like theirs. The schema must be migrated.
func Operate(ctx context.Context, servers service.Servers, logger *slog.Logger, fn func(context.Context, Services) error) (err error) {
	if err := servers.Validate(); err != nil {
		return err
	}
	config := Config{Config: service.Config{Servers: servers}, InForceWait: inForceWait}
	base, err := service.New("tenants", config.Config, logger)
	if err != nil {
		return err
	}
	a := &App{config: config, base: base}
	defer a.Close()
	if a.base.Pool, err = pg.OpenCurrent(ctx, servers.DatabaseURL.Reveal(), schema.Name, schema.Migrations()...); err != nil {
		return err
	}
	if err := a.assemble(); err != nil {
		return err
	}
	ctx, done := context.WithCancel(ctx)
	return lifecycle.Run(ctx, a.out.relay.Run, a.in.state.Run, func(ctx context.Context) error {
		defer done()
		return fn(ctx, a.rooms.Services)
	})
}

// CurrentUser is the user of this process, for the audit.
func CurrentUser() string {
	name, host := "somebody", "an unknown host"
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	if named, err := os.Hostname(); err == nil {
		host = named
	}
	return name + "@" + host
}

// CheckAudits compares the audit of an organization with its events,
// or if empty of all and of the installation, and reports on each.
func CheckAudits(ctx context.Context, database httpapi.Secret, organization string, report func(string, tenants.AuditCheck)) error {
	if err := process.CheckDatabaseURL("WEIR_DATABASE_URL", database.Reveal()); err != nil {
		return err
	}
	pool, err := pg.OpenCurrent(ctx, database.Reveal(), schema.Name, schema.Migrations()...)
	if err != nil {
		return err
	}
	defer pool.Close()
	organizations, err := audit.Audited(ctx, pool)
	if err != nil {
		return err
	}
	found, events := false, projections.NewEvents(pool)
	for _, id := range organizations {
		if organization != "" && organization != id {
			continue
		}
		check, err := audit.Check(ctx, pool, events, id)
		if err != nil {
			return err
		}
		found = true
		report(id, check)
	}
	if !found && organization != "" {
		return fmt.Errorf("organization %q: %w", organization, tenants.ErrNotFound)
	}
	return nil
}

// Pages for links with codes.
const (
	WelcomePath = people.WelcomePath
	ResetPath   = people.ResetPath
)

// DefaultOrigin is the console's address without a setting.
const DefaultOrigin = "https://localhost:8443"

// Link is the address of a page of the console, with
// a code after the #, which browsers do not send.
func Link(origin, path string, code tenants.Secret) string {
	return strings.TrimSuffix(origin, "/") + path + "#" + code.Reveal()
}

// welcomeOwner prints the link for the first owner while there is no member.
// It prints to the output, because logs are kept and shown to others.
func welcomeOwner(ctx context.Context, config Config, codes *people.Codes) error {
	if config.Output == nil {
		return nil
	}
	origin, err := config.origin()
	if err != nil {
		return err
	}
	code, expires, err := codes.IssueOwnerCode(ctx, unitofwork.AtStart())
	if errors.Is(err, tenants.ErrHasMembers) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot make a link for the first owner: %w", err)
	}
	_, err = fmt.Fprintf(config.Output, "\nNobody can sign in here yet. Anyone who opens this link becomes the first owner:\n\n    %s\n\n"+
		"It works once, until %s. A restart prints another one, and so does \"tenants owner-link\"; this one is void then.\n\n",
		Link(cmp.Or(origin, DefaultOrigin), WelcomePath, code), expires.Format("2006-01-02 15:04 UTC"))
	return err
}
