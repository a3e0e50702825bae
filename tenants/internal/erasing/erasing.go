package erasing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
)

// Tables are all tables, in the order of erasure:
// first the events, last the withdrawals.
func Tables(withdrawals *bus.Withdrawals) []erasure.Table {
	first, last := []erasure.Table{events(withdrawals)}, []erasure.Table{allWithdrawn(withdrawals), erasure.Parked()}
	return slices.Concat(first, signin.Erasable(), people.Erasable(), keys.Erasable(), notifications.Erasable(), registry.Erasable(), last)
}

// How many streams one transaction erases: others wait meanwhile to append. Of reports nothing is
// published.
const (
	streamBatch = 20
	reportBatch = 500
)

// events erases the events, withdraws what was published
// of them, and reduces their lines in the audit.
func events(withdrawals *bus.Withdrawals) erasure.Table {
	return erasure.Table{Name: "events", Erase: func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, place string, _ int) (int64, string, error) {
		if err := eventstorepg.LockAppends(ctx, tx); err != nil {
			return 0, "", err
		}
		published, err := withdrawals.Published(ctx, tx, of.Organization)
		if err != nil {
			return 0, "", err
		}
		if !published {
			return 0, "", erasure.ErrNotYet
		}
		streams, err := streamsOf(ctx, tx, of, place)
		if err != nil {
			return 0, "", err
		}
		if len(streams) == 0 {
			return 0, "", reduceDecisions(ctx, tx, of)
		}
		removed, err := eraseStreams(ctx, tx, withdrawals, of, streams)
		return removed, streams[len(streams)-1], err
	}}
}

// streamsOf lists the next streams to erase.
// Those of deletions stay: they hold only ids.
func streamsOf(ctx context.Context, tx pgx.Tx, of erasure.Deletion, behind string) ([]string, error) {
	if of.Project != "" {
		return streamsOfProject(ctx, tx, of, behind)
	}
	streams, err := eventstorepg.StreamsTx(ctx, tx, of.Organization, behind, bus.DeletionStreams, streamBatch)
	if err != nil || len(streams) == 0 || !isReport(streams[0]) {
		return streams, err
	}
	streams, err = eventstorepg.StreamsTx(ctx, tx, of.Organization, behind, bus.DeletionStreams, reportBatch)
	if end := slices.IndexFunc(streams, func(name string) bool { return !isReport(name) }); end > 0 {
		streams = streams[:end]
	}
	return streams, err
}

func isReport(stream string) bool { return strings.HasPrefix(stream, audit.ReportStreams) }

// Streams of a project: of its keys, which are before it by name, and of its reports.
const (
	listKeysAndProject = `SELECT stream FROM events WHERE organization = $1 AND version = 1 AND stream > $3 AND stream <= 'project/' || $2
		AND (name = $5 AND data->>'project' = $2 OR stream = 'project/' || $2) AND name <> 'erased' ORDER BY stream LIMIT $4`
	listReports = `SELECT stream FROM events WHERE organization = $1 AND stream > $3 AND stream < $2 || 'a'
		AND name <> 'erased' ORDER BY stream LIMIT $4`
)

func streamsOfProject(ctx context.Context, tx pgx.Tx, of erasure.Deletion, behind string) (streams []string, err error) {
	reports := audit.ReportStreams + of.Project + "/"
	if !isReport(behind) {
		streams, err = list(ctx, tx, listKeysAndProject, of.Organization, of.Project, behind, streamBatch, tenants.EventName(tenants.APIKeyIssued{}))
		behind = reports
	}
	if err != nil || len(streams) > 0 {
		return streams, err
	}
	return list(ctx, tx, listReports, of.Organization, reports, behind, reportBatch)
}

func list(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot list the streams of a project of %q: %w", args[0], err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func eraseStreams(ctx context.Context, tx pgx.Tx, withdrawals *bus.Withdrawals, of erasure.Deletion, streams []string) (int64, error) {
	for _, name := range streams {
		if isReport(name) {
			continue
		}
		if err := withdrawals.Withdraw(ctx, tx, eventstore.Stream{Organization: of.Organization, Name: name}); err != nil {
			return 0, err
		}
	}
	erased, err := eventstorepg.EraseTx(ctx, tx, of.Organization, streams)
	if err != nil {
		return 0, err
	}
	return int64(len(erased)), audit.Reduce(ctx, tx, of.Organization, id(of), erased)
}

// reduceDecisions removes deleted people from the lines about deletions.
func reduceDecisions(ctx context.Context, tx pgx.Tx, of erasure.Deletion) error {
	if of.Project != "" {
		return nil
	}
	return audit.ReduceActors(ctx, tx, of.Organization, id(of), bus.DeletionStreams)
}

func id(of erasure.Deletion) string {
	return tenants.Deletable{Organization: of.Organization, Project: of.Project}.ID()
}

// allWithdrawn waits until all is withdrawn.
func allWithdrawn(withdrawals *bus.Withdrawals) erasure.Table {
	return erasure.Table{Name: "withdrawals", Erase: func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, place string, limit int) (int64, string, error) {
		removed, all, err := withdrawals.Settle(ctx, tx, of.Organization, limit)
		switch {
		case err != nil:
			return 0, "", err
		case all:
			return removed, "", nil
		case removed == 0:
			return 0, "", erasure.ErrNotYet
		}
		return removed, "on", nil
	}}
}

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
