package erasure

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations creates the table of deletions.
func Migrations() pg.MigrationSet {
	return pg.MigrationSet{Name: "erasure", FS: migrations, Rights: pg.Rights{"erasures": "SELECT, INSERT, UPDATE, DELETE"}}
}

// A Deletion is to be erased: an organization, or only its Project if
// there is one.
type Deletion struct {
	Organization string
	Project      string
}

// Consumer configures the consumer of deletions of a module that
// consumes no other facts of tenants.
func Consumer(group string) consumer.Config {
	return consumer.Config{
		Group: group, Topic: contract.TopicTenants, Handle: Consume, Erased: IsErased,
		AcceptLost: true, // the topic is compacted: records missing from its beginning were withdrawn
		Rereads:    true, // tenants publishes again what it loses
	}
}

// Consume begins the erasure of deletions on weir.tenants.v1, in the
// transaction that moves the positions, which acts as the system. It
// ignores all other facts.
func Consume(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	for _, record := range records {
		if record.Header(contract.HeaderType) != contract.TypeDeletionBegun || len(record.Value) == 0 {
			continue
		}
		var begun contract.DeletionBegun
		if err := json.Unmarshal(record.Value, &begun); err != nil || begun.Organization == "" {
			return bus.PermanentRecord(record, fmt.Errorf("cannot read what the event %q deletes: %w", record.Header(contract.HeaderID), err))
		}
		if err := Begin(ctx, tx, Deletion{begun.Organization, begun.Project}, begun.BegunAt, begun.GoneBy); err != nil {
			return err
		}
	}
	return nil
}

// Begin starts an erasure at the commit of tx. It waits for
// transactions that have called FindDeleted: their writes are erased
// too, and later callers see the deletion.
func Begin(ctx context.Context, tx pgx.Tx, of Deletion, at, goneBy time.Time) error {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(`+lock+`)`); err != nil {
		return fmt.Errorf("cannot wait for those who write: %w", err)
	}
	_, err := tx.Exec(ctx, `INSERT INTO erasures (organization, project, begun_at, gone_by) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		of.Organization, of.Project, at, goneBy)
	if err != nil {
		return fmt.Errorf("cannot begin to erase %v: %w", of, err)
	}
	return nil
}

const lock = `hashtextextended('weir erasure ' || current_schema(), 0)`

// A Set holds the deletions of some organizations.
type Set map[Deletion]bool

// FindDeleted returns the deletions of some organizations, for a
// transaction that writes for them as the system. Until it ends, no
// other deletion of theirs begins.
func FindDeleted(ctx context.Context, tx pgx.Tx, organizations []string) (Set, error) {
	var batch pgx.Batch
	batch.Queue(`SELECT pg_advisory_xact_lock_shared(` + lock + `)`) // its own statement, so that the next one sees what was awaited
	batch.Queue(`SELECT organization, project FROM erasures WHERE organization = ANY($1)`, organizations)
	results := tx.SendBatch(ctx, &batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return nil, fmt.Errorf("cannot keep deletions from beginning: %w", err)
	}
	rows, err := results.Query()
	if err != nil {
		return nil, fmt.Errorf("cannot read what is deleted: %w", err)
	}
	set := Set{}
	var of Deletion
	_, err = pgx.ForEachRow(rows, []any{&of.Organization, &of.Project}, func() error {
		set[of] = true
		return nil
	})
	return set, err
}

// IsErased reports whether a record's project or organization is deleted,
// so that a consumer keeps none of it. It is FindDeleted for one record.
func IsErased(ctx context.Context, tx pgx.Tx, record bus.Record) (bool, error) {
	organization := record.Header(contract.HeaderOrganization)
	set, err := FindDeleted(ctx, tx, []string{organization})
	return set.Has(organization, record.Header(contract.HeaderProject)), err
}

// FindDeletedIn is FindDeleted for the organizations of records.
func FindDeletedIn(ctx context.Context, tx pgx.Tx, records []contract.LogsAccepted) (Set, error) {
	if len(records) == 0 {
		return nil, nil
	}
	seen := map[string]bool{}
	var organizations []string
	for i := range records {
		if id := records[i].Organization; !seen[id] {
			seen[id] = true
			organizations = append(organizations, id)
		}
	}
	return FindDeleted(ctx, tx, organizations)
}

// Has reports whether a project is deleted, by itself or with its organization.
func (s Set) Has(organization, project string) bool {
	return s[Deletion{organization, project}] || s[Deletion{organization, ""}]
}

// Retention is how long modules remember deletions: 3 to 1200 months.
// Zero means the default.
type Retention struct {
	DeletionsMonths int `help:"For how many months it is known which organizations and projects were deleted, by their ids: longer than the log keeps records of them, and than a backup is restored." env:"WEIR_DELETIONS_MONTHS" default:"25"`
}

const (
	// DefaultMonths equals the ledger's retention of transfers.
	DefaultMonths = 25
	minMonths     = 3    // facts are kept for 30 days, parked records for 90
	maxMonths     = 1200 // a century: no backup is older
)

// Validate returns what is wrong.
func (r Retention) Validate() error {
	if r.DeletionsMonths != 0 && (r.DeletionsMonths < minMonths || r.DeletionsMonths > maxMonths) {
		return fmt.Errorf("WEIR_DELETIONS_MONTHS is %d: what was deleted is known for %d to %d months", r.DeletionsMonths, minMonths, maxMonths)
	}
	return nil
}

// Months returns how many months deletions are remembered.
func (r Retention) Months() int { return cmp.Or(r.DeletionsMonths, DefaultMonths) }

// Since returns the time from which on deletions are remembered.
func (r Retention) Since(clock func() time.Time) func() time.Time {
	return func() time.Time { return clock().AddDate(0, -r.Months(), 0) }
}

// Table returns the table of deletions, for a prune.Pruner.
func (r Retention) Table(clock func() time.Time) prune.Rows {
	return prune.Rows{
		Table: "erasures", Bound: fmt.Sprintf("ids for %d months after what they name was erased", r.Months()),
		Age: "published_at", Before: r.Since(clock),
	}
}

// RemovedMembers are those whom records of weir.tenants.v1 report. All other
// records are ignored.
func RemovedMembers(records []bus.Record) (removed []contract.MemberRemoved, err error) {
	for _, record := range records {
		if record.Header(contract.HeaderType) != contract.TypeMemberRemoved || len(record.Value) == 0 {
			continue
		}
		var member contract.MemberRemoved
		if err := json.Unmarshal(record.Value, &member); err != nil {
			return nil, bus.PermanentRecord(record, fmt.Errorf("cannot read who was removed: %w", err))
		}
		removed = append(removed, member)
	}
	return removed, nil
}
