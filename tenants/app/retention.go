package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/erasing"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
)

// auditDays is the default: a year, and some time to review it.
const auditDays = 400

// minAuditDays is longer than anything in the audit is under way.
const minAuditDays = 30

func (c Config) auditKept() time.Duration {
	return time.Duration(cmp.Or(c.AuditDays, auditDays)) * 24 * time.Hour
}

// deletionsKnownSince is since when deletions are known:
// as long as the audit keeps lines of organizations.
func (c Config) deletionsKnownSince(clock func() time.Time) func() time.Time {
	known := c.Deletions.Since(clock)
	return func() time.Time { return calendar.Earlier(known(), clock().Add(-c.auditKept())) }
}

// newPruner keeps all tables of the schema within their bounds.
func (a *App) newPruner() *prune.Pruner {
	return prune.New(prune.Config{
		Pool: a.base.Pool, Tables: a.tables,
		Fixed: slices.Concat(registry.Fixed(), audit.Fixed(), notifications.Fixed(), sharedbus.Fixed(), []prune.Bound{cursorkey.Bound()}),
		Clock: a.config.Clock, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
}

func (a *App) tables(clock func() time.Time) []prune.Table {
	forget := bus.Forget(a.base.Publisher, a.base.Clock)
	return slices.Concat([]prune.Table{challenge.Table(clock)}, signin.Tables(clock), people.Tables(clock), keys.Tables(clock, forget),
		registry.Tables(clock, forget), audit.Tables(clock, a.config.auditKept(), a.withdrawals.WithdrawFacts),
		[]prune.Table{a.withdrawals, erasing.Past(a.withdrawals, a.config.deletionsKnownSince(clock)), a.config.Deletions.Table(clock)},
		notifications.Tables(clock), a.config.Retention.Tables(clock))
}

// Prune removes once what exceeds its bound; Run does it continuously.
func (a *App) Prune(ctx context.Context) error { return a.pruner.RunOnce(ctx) }

// Bounds are those of all tables of the schema.
func (a *App) Bounds() []prune.Bound { return a.pruner.Bounds() }
