package erasing

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/registry"
)

// past are finished or cancelled deletions. Once they are old, their
// facts are withdrawn, and nothing is left of an organization.
type past struct {
	withdrawals *bus.Withdrawals
	before      func() time.Time
}

// Past is the table of deletions, for a prune.Pruner.
// It keeps those that ended after an instant.
func Past(withdrawals *bus.Withdrawals, before func() time.Time) prune.Table {
	return past{withdrawals, before}
}

func (past) Name() string { return "deletions" }

func (past) Keeps() string {
	return "ids for WEIR_DELETIONS_MONTHS and WEIR_AUDIT_DAYS after the deletion is over"
}

// deletionBatch is how many deletions one transaction removes.
const deletionBatch = 20

func (p past) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	before := p.before()
	if oldest, err := registry.OldestDeletion(ctx, tx); err != nil || oldest.IsZero() || !oldest.Before(before) {
		return 0, false, err
	}
	if err := eventstorepg.LockAppends(ctx, tx); err != nil { // before any row, as in every append
		return 0, false, err
	}
	gone, err := registry.TakePastDeletions(ctx, tx, before, deletionBatch)
	if err != nil || len(gone) == 0 {
		return 0, false, err
	}
	for _, of := range gone {
		if err := p.forget(ctx, tx, of); err != nil {
			return 0, false, err
		}
	}
	return int64(len(gone)), true, nil
}

// forget leaves the events of a project,
// or of a restored thing, to the audit.
func (p past) forget(ctx context.Context, tx pgx.Tx, of registry.PastDeletion) error {
	switch {
	case of.State != tenants.Gone:
		return nil
	case of.Project != "":
		return p.withdrawals.Withdraw(ctx, tx, eventstore.Stream{Organization: of.Organization, Name: bus.DeletionStreams + of.Project})
	}
	return p.forgetOrganization(ctx, tx, of.Organization)
}

// forgetOrganization also withdraws the facts of its projects'
// deletions: without its events nothing leads to them.
func (p past) forgetOrganization(ctx context.Context, tx pgx.Tx, organization string) error {
	if err := p.withdrawals.WithdrawDeletions(ctx, tx, organization); err != nil {
		return err
	}
	if err := p.withdrawals.WithdrawCreation(ctx, tx, organization); err != nil {
		return err
	}
	return audit.Forget(ctx, tx, organization)
}

// Oldest implements prune.Table.
func (past) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	return registry.OldestDeletion(ctx, tx)
}
