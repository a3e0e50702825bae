package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/service"
)

// Config is what grouping needs to run.
type Config struct {
	service.Config `embed:""`

	Logs service.LogsConfig `embed:""`

	BatchRecords int           `help:"Most records that one transaction groups." env:"WEIR_GROUPING_BATCH_RECORDS" default:"1000"`
	BatchWait    time.Duration `help:"Least time between the starts of two transactions that are not full, which is how long records wait for others; after a pause a tenth of it." env:"WEIR_GROUPING_BATCH_WAIT" default:"250ms"`

	NewGroupsPerHour int `help:"Most new groups that the errors of one project and hour create; what is new beyond that is counted in one group of the project, which is described as that." env:"WEIR_GROUPING_NEW_GROUPS_PER_HOUR" default:"1000"`

	NewGroupsPerOrganization int `help:"The same for all projects of one organization together." env:"WEIR_GROUPING_NEW_GROUPS_PER_ORGANIZATION" default:"5000"`

	MaxAlerts int `name:"error-alerts" help:"Alerts on errors that a project has at most." env:"WEIR_MAX_ERROR_ALERTS" default:"50"`

	Reads int `help:"Reads of groups at work at once; one organization has at most half of them. Each has a connection of its own." env:"WEIR_GROUPING_READS" default:"4"`
}

// maxAlerts is how many alerts a project has.
func (c Config) maxAlerts() int { return cmp.Or(c.MaxAlerts, 50) }

// Validate joins all faults of the configuration.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate()}
	if c.BatchRecords < 0 || c.BatchWait < 0 || c.NewGroupsPerHour < 0 || c.NewGroupsPerOrganization < 0 || c.Reads < 0 || c.MaxAlerts < 0 {
		errs = append(errs, errors.New("WEIR_GROUPING_* and WEIR_MAX_ERROR_ALERTS can't be negative"))
	}
	return errors.Join(errs...)
}

// newGroups are the budgets of new groups.
func (c Config) newGroups() grouping.Budgets {
	return grouping.Budgets{Project: cmp.Or(c.NewGroupsPerHour, 1000), Organization: cmp.Or(c.NewGroupsPerOrganization, 5000)}
}

// reads is how many requests read the database at once.
func (c Config) reads() int { return cmp.Or(c.Reads, 4) }

// newPruner keeps all tables of the schema within their bounds.
func (a *App) newPruner() *prune.Pruner {
	return prune.New(prune.Config{
		Pool: a.base.Pool, Tables: a.tables,
		Fixed: slices.Concat(postgres.Fixed(), sharedbus.Fixed(), []prune.Bound{cursorkey.Bound()}),
		Clock: a.config.Clock, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
}

func (a *App) tables(clock func() time.Time) []prune.Table {
	return slices.Concat(postgres.Tables(clock), inbox.Tables(clock), a.config.Retention.Tables(clock),
		[]prune.Table{outbox.Table(bus.RelayName), a.config.Deletions.Table(clock)})
}

// Prune removes once what exceeds its bound; Run does it continuously.
func (a *App) Prune(ctx context.Context) error { return a.pruner.RunOnce(ctx) }

// Bounds are those of all tables of the schema.
func (a *App) Bounds() []prune.Bound { return a.pruner.Bounds() }
