package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A Store reads organizations, projects,
// service tokens and security policies.
type Store struct{ reader *query.Reader }

// NewStore returns the store of a reader.
func NewStore(reader *query.Reader) Store { return Store{reader} }

// Projections maps these events to their tables.
func Projections() unitofwork.Projections {
	return unitofwork.Join(
		unitofwork.On(insertOrganization),
		unitofwork.On(renameOrganization),
		unitofwork.On(insertProject),
		unitofwork.On(renameProject),
		unitofwork.On(insertServiceToken),
		unitofwork.On(revokeServiceToken),
		unitofwork.On(setSecurityPolicy),
		unitofwork.On(requestDeletion),
		unitofwork.On(cancelDeletion),
		unitofwork.On(beginDeletion),
		unitofwork.On(finishDeletion),
	)
}

// count is how many projects or service tokens an organization has at now.
func count(ctx context.Context, in *query.Reader, organization pg.Organization, what tenants.Countable, now time.Time) (int, error) {
	counted, args := `projects WHERE organization = $1`, []any(nil)
	switch what {
	case tenants.CountProjects:
	case tenants.CountProjectsKept:
		counted, args = projectsKept, []any{now.Add(-tenants.EndedKept)}
	case tenants.CountServiceTokens:
		counted = `service_tokens WHERE organization = $1 AND revoked_at IS NULL`
	case tenants.CountServiceTokensKept:
		counted, args = `service_tokens WHERE organization = $1 AND coalesce(revoked_at, 'infinity') > $2`, []any{now.Add(-tenants.EndedKept)}
	default:
		panic(fmt.Sprintf("BUG: the registry does not count %q", what))
	}
	return query.One(ctx, in, organization, pgx.RowTo[int], `SELECT count(*) FROM `+counted, args...)
}

// projectsKept are the projects of $1, and those
// deleted after $2. Until its erasure one is both.
const projectsKept = `(SELECT id FROM projects WHERE organization = $1
	UNION SELECT id FROM deletions WHERE organization = $1 AND project <> '' AND state <> 'cancelled'
	  AND coalesce(finished_at, 'infinity') > $2) kept`

// Erasable are the room's tables, in the order of erasure.
func Erasable() []erasure.Table {
	const ofProject = `organization = $1 AND ($2 = '' OR id = $2)`
	return []erasure.Table{
		erasure.Rows("security_policies", erasure.OfOrganization), erasure.Rows("service_tokens", erasure.OfOrganization),
		erasure.Rows("projects", ofProject), erasure.Rows("organizations", erasure.OfOrganization),
	}
}

func counted(as ...tenants.Countable) unitofwork.Counted {
	return unitofwork.Counted{Count: count, As: as}
}

func insertOrganization(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.OrganizationCreated) error {
	return query.ExactlyOne(ctx, tx, `INSERT INTO organizations (organization, name, tier, created_at) VALUES ($1, $2, $3, $4)`,
		e.Organization, e.Name, e.Tier, e.At)
}

func renameOrganization(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.OrganizationRenamed) error {
	return query.ExactlyOne(ctx, tx, `UPDATE organizations SET name = $2 WHERE organization = $1`, e.Organization, e.Name)
}

const selectOrganizations = `SELECT organization, name, tier, created_at FROM organizations `

func scanOrganization(row pgx.CollectableRow) (o tenants.Organization, err error) {
	err = row.Scan(&o.ID, &o.Name, &o.Tier, &o.CreatedAt)
	return o, err
}

// Organization returns one organization, or ErrNotFound.
func (s Store) Organization(ctx context.Context, as pg.Organization, id string) (tenants.Organization, error) {
	return query.One(ctx, s.reader, as, scanOrganization, selectOrganizations+`WHERE `+query.Visible+` AND organization = $2 AND deletion = ''`, id)
}

// Organizations lists at most limit organizations after a position.
func (s Store) Organizations(ctx context.Context, as pg.Organization, after query.Position, limit int) ([]tenants.Organization, error) {
	return query.List(ctx, s.reader, as, scanOrganization, selectOrganizations+
		`WHERE `+query.Visible+` AND deletion = '' AND (created_at, organization) > ($2, $3) ORDER BY created_at, organization LIMIT $4`, after.At, after.ID, limit)
}

// Exists is ErrNotFound for an organization that is to be deleted.
func Exists(ctx context.Context, in *query.Reader, organization pg.Organization) error {
	hidden, err := query.One(ctx, in, organization, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM organizations WHERE organization = $1 AND deletion <> '')`)
	if err == nil && hidden {
		err = fmt.Errorf("organization %q is to be deleted: %w", organization, tenants.ErrNotFound)
	}
	return err
}

func insertProject(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.ProjectCreated) error {
	return query.ExactlyOne(ctx, tx, `INSERT INTO projects (organization, id, name, created_at) VALUES ($1, $2, $3, $4)`,
		e.Organization, e.Project, e.Name, e.At)
}

func renameProject(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.ProjectRenamed) error {
	return query.ExactlyOne(ctx, tx, `UPDATE projects SET name = $3 WHERE organization = $1 AND id = $2`, at.Organization, e.Project, e.Name)
}

const selectProjects = `SELECT organization, id, name, created_at FROM projects `

func scanProject(row pgx.CollectableRow) (p tenants.Project, err error) {
	err = row.Scan(&p.Organization, &p.ID, &p.Name, &p.CreatedAt)
	return p, err
}

// Project returns one project, or ErrNotFound.
func (s Store) Project(ctx context.Context, as pg.Organization, id string) (tenants.Project, error) {
	return query.One(ctx, s.reader, as, scanProject, selectProjects+`WHERE `+query.Visible+` AND id = $2 AND deletion = ''`, id)
}

// Projects lists at most limit projects of an organization after a position.
func (s Store) Projects(ctx context.Context, as, organization pg.Organization, after query.Position, limit int) ([]tenants.Project, error) {
	return query.List(ctx, s.reader, as, scanProject, selectProjects+
		`WHERE `+query.Visible+` AND organization = $2 AND deletion = '' AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5`,
		organization, after.At, after.ID, limit)
}

func setSecurityPolicy(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.SecurityPolicySet) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO security_policies (organization, leaked_keys, plain_http_keys, set_at, passwords_off) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (organization) DO UPDATE SET leaked_keys = $2, plain_http_keys = $3, set_at = $4, passwords_off = $5`,
		e.Organization, e.LeakedKeys, e.PlainHTTPKeys, e.At, e.PasswordsOff)
}

// SecurityPolicy returns the policy of an existing
// organization: the default if none was set.
func (s Store) SecurityPolicy(ctx context.Context, as, organization pg.Organization) (tenants.SecurityPolicy, error) {
	policy, err := query.One(ctx, s.reader, as, pgx.RowToStructByPos[tenants.SecurityPolicy],
		`SELECT organization, leaked_keys, plain_http_keys, set_at, passwords_off FROM security_policies WHERE `+query.Visible+` AND organization = $2`, organization)
	if errors.Is(err, tenants.ErrNotFound) {
		return tenants.DefaultSecurityPolicy(string(organization)), nil
	}
	return policy, err
}

// SecurityPolicyOf is an organization's present policy.
func SecurityPolicyOf(ctx context.Context, in *query.Reader, organization pg.Organization) (tenants.SecurityPolicy, error) {
	return NewStore(in).SecurityPolicy(ctx, organization, organization)
}

func insertServiceToken(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.ServiceTokenIssued) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO service_tokens (organization, id, name, scopes, configured, hash, first, last, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		e.Organization, e.ServiceToken, e.Name, e.Scopes, e.Configured, e.Digest.Hash, e.Digest.First, e.Digest.Last, e.At)
}

func revokeServiceToken(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.ServiceTokenRevoked) error {
	return query.ExactlyOne(ctx, tx, `UPDATE service_tokens SET revoked_at = $3, revoke_reason = $4 WHERE organization = $1 AND id = $2`,
		at.Organization, e.ServiceToken, e.At, e.Reason)
}

const selectServiceTokens = `
SELECT organization, id, name, scopes, configured, hash, first, last, created_at, revoked_at, revoke_reason
FROM service_tokens `

func scanServiceToken(row pgx.CollectableRow) (s tenants.ServiceToken, err error) {
	var revoked *time.Time
	err = row.Scan(&s.Organization, &s.ID, &s.Name, &s.Scopes, &s.Configured, &s.Digest.Hash, &s.Digest.First,
		&s.Digest.Last, &s.IssuedAt, &revoked, &s.Revocation.Reason)
	s.Revocation.At = query.OrZero(revoked)
	return s, err
}

// ServiceToken returns one service token, or ErrNotFound.
func (s Store) ServiceToken(ctx context.Context, as pg.Organization, id string) (tenants.ServiceToken, error) {
	return query.One(ctx, s.reader, as, scanServiceToken, selectServiceTokens+`WHERE `+query.Visible+` AND id = $2`, id)
}

// ServiceTokens lists at most limit service tokens of an organization, or
// of the installation, after a position.
func (s Store) ServiceTokens(ctx context.Context, as, organization pg.Organization, after query.Position, limit int) ([]tenants.ServiceToken, error) {
	return query.List(ctx, s.reader, as, scanServiceToken, selectServiceTokens+
		`WHERE `+query.Visible+` AND organization = $2 AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5`,
		organization, after.At, after.ID, limit)
}

// Configured returns configured tokens that were registered and not revoked.
func (s Store) Configured(ctx context.Context) ([]tenants.ServiceToken, error) {
	return query.List(ctx, s.reader, tenants.Installation, scanServiceToken, selectServiceTokens+
		`WHERE organization = $1 AND configured AND revoked_at IS NULL`)
}

func requestDeletion(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.DeletionRequested) error {
	err := query.ExactlyOne(ctx, tx, `
		INSERT INTO deletions (organization, id, project, state, requested_at, begins_at, gone_by) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (organization, id) DO UPDATE SET state = $4, requested_at = $5, begins_at = $6, gone_by = $7`,
		e.Organization, e.ID(), e.Project, tenants.Deleting, e.At, e.BeginsAt, e.BeginsAt.Add(tenants.ErasureTimeout))
	if err != nil {
		return err
	}
	return hide(ctx, tx, e.Deletable, e.ID(), "")
}

func cancelDeletion(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.DeletionCancelled) error {
	if err := changeDeletion(ctx, tx, e.Deletable, `state = $3`, tenants.DeletionCancelledState); err != nil {
		return err
	}
	return hide(ctx, tx, e.Deletable, "", e.ID())
}

// hide hides what is to be deleted, or shows it
// again. It may be gone when the tables are rebuilt.
func hide(ctx context.Context, tx pgx.Tx, of tenants.Deletable, by, from string) error {
	if of.Project == "" {
		if _, err := tx.Exec(ctx, `UPDATE organizations SET deletion = $2 WHERE organization = $1`, of.Organization, by); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE projects SET deletion = $3 WHERE organization = $1 AND ($2 = '' OR id = $2) AND deletion = $4`,
		of.Organization, of.Project, by, from)
	return err
}

func beginDeletion(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.DeletionBegun) error {
	if err := changeDeletion(ctx, tx, e.Deletable, `state = $3, gone_by = $4`, tenants.Erasing, e.GoneBy); err != nil {
		return err
	}
	return erasure.Begin(ctx, tx, erasure.Deletion{Organization: e.Organization, Project: e.Project}, e.At, e.GoneBy)
}

func finishDeletion(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.DeletionFinished) error {
	removed, err := json.Marshal(e.Removed)
	if err != nil {
		return err
	}
	return changeDeletion(ctx, tx, e.Deletable, `state = $3, finished_at = $4, removed = $5::jsonb`, tenants.Gone, e.At, string(removed))
}

func changeDeletion(ctx context.Context, tx pgx.Tx, of tenants.Deletable, change string, args ...any) error {
	return query.ExactlyOne(ctx, tx, `UPDATE deletions SET `+change+` WHERE organization = $1 AND id = $2`, append([]any{of.Organization, of.ID()}, args...)...)
}

// KeepErased stores a module's report. tx must
// act as the system. Repeated reports are equal.
func KeepErased(ctx context.Context, tx pgx.Tx, of tenants.Deletable, module string, removed map[string]int64) error {
	text, err := json.Marshal(map[string]map[string]int64{module: removed})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE deletions SET removed = removed || $3::jsonb WHERE organization = $1 AND id = $2 AND state = 'erasing'`,
		of.Organization, of.ID(), string(text))
	return err
}

// A ListedDeletion is a deletion and the rows removed so far.
type ListedDeletion struct {
	tenants.Deletable
	State       tenants.DeletionState
	RequestedAt time.Time
	BeginsAt    time.Time
	GoneBy      time.Time
	FinishedAt  time.Time // zero: not finished
	Removed     map[string]map[string]int64
}

const selectDeletions = `SELECT organization, project, state, requested_at, begins_at, gone_by, finished_at, removed FROM deletions `

func scanDeletion(row pgx.CollectableRow) (d ListedDeletion, err error) {
	var finished *time.Time
	var removed []byte
	if err := row.Scan(&d.Organization, &d.Project, &d.State, &d.RequestedAt, &d.BeginsAt, &d.GoneBy, &finished, &removed); err != nil {
		return d, err
	}
	d.FinishedAt = query.OrZero(finished)
	if err := json.Unmarshal(removed, &d.Removed); err != nil {
		return d, fmt.Errorf("cannot read what was removed of %q: %w", d.ID(), err)
	}
	return d, nil
}

// Deletion returns the deletion of an organization or project, or ErrNotFound.
func (s Store) Deletion(ctx context.Context, as pg.Organization, id string) (ListedDeletion, error) {
	return query.One(ctx, s.reader, as, scanDeletion, selectDeletions+`WHERE `+query.Visible+` AND id = $2`, id)
}

// Deletions lists at most limit deletions of an organization and
// its projects after a position.
func (s Store) Deletions(ctx context.Context, as, organization pg.Organization, after query.Position, limit int) ([]ListedDeletion, error) {
	return query.List(ctx, s.reader, as, scanDeletion, selectDeletions+
		`WHERE `+query.Visible+` AND organization = $2 AND (requested_at, id) > ($3, $4) ORDER BY requested_at, id LIMIT $5`,
		organization, after.At, after.ID, limit)
}

// DueDeletions lists at most limit deletions, of all
// organizations, that are due and have not begun.
func (s Store) DueDeletions(ctx context.Context, now time.Time, limit int) ([]ListedDeletion, error) {
	return query.List(ctx, s.reader, tenants.Installation, scanDeletion, selectDeletions+
		`WHERE `+query.Visible+` AND state = 'deleting' AND begins_at <= $2 ORDER BY begins_at LIMIT $3`, now, limit)
}

// ReportedDeletions lists at most limit unfinished deletions,
// of all organizations, that all the modules have reported.
func (s Store) ReportedDeletions(ctx context.Context, modules []string, limit int) ([]ListedDeletion, error) {
	return query.List(ctx, s.reader, tenants.Installation, scanDeletion, selectDeletions+
		`WHERE `+query.Visible+` AND state = 'erasing' AND removed ?& $2::text[] ORDER BY begins_at LIMIT $3`, modules, limit)
}

// UnfinishedDeletions are how many begun deletions are
// not finished, and how many of these are overdue.
type UnfinishedDeletions struct{ All, Overdue int }

// UnfinishedDeletions counts those of all organizations.
func (s Store) UnfinishedDeletions(ctx context.Context, now time.Time) (UnfinishedDeletions, error) {
	return query.One(ctx, s.reader, tenants.Installation, pgx.RowToStructByPos[UnfinishedDeletions], `SELECT count(*), count(*) FILTER (WHERE gone_by < $2)
		FROM deletions WHERE `+query.Visible+` AND state IN ('deleting', 'erasing') AND begins_at <= $2`, now)
}

// hasDeletion reads the deletion of an organization
// itself, even of a hidden or deleted one.
func (s Store) hasDeletion(ctx context.Context, as pg.Organization, organization string) (bool, error) {
	_, err := s.Deletion(ctx, as, organization)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Tables are the room's tables whose rows age, for a prune.Pruner.
func Tables(clock func() time.Time, forget bus.ForgetCredentials) []prune.Table {
	return []prune.Table{bus.EndedCredentials{
		Table: "service_tokens", Bound: "100 in force of an organization, and 90 days of those that were revoked",
		Ended: "revoked_at", Clock: clock, Forget: forget,
	}}
}

// Fixed are the bounds of the room's other tables.
func Fixed() []prune.Bound {
	return []prune.Bound{
		{Table: "organizations", Keeps: "a row for each organization", By: "operators, who alone make them"},
		{Table: "projects", Keeps: "200 of an organization", By: "WEIR_MAX_PROJECTS"},
		{Table: "security_policies", Keeps: "a row for each organization", By: "its primary key"},
	}
}
