package readopting

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// An Orphan is an organization, project or key that no event led to, though
// other modules or the topics know it.
type Orphan struct {
	bus.Named

	Held bool // other modules hold something of it
}

// Unknown returns those of some organizations and projects that no event
// led to. tx acts as the system.
func Unknown(ctx context.Context, tx pgx.Tx, held []erasure.Deletion) ([]erasure.Deletion, error) {
	all := make([]bus.Named, len(held))
	for i, of := range held {
		all[i] = bus.Named{Organization: of.Organization, Project: of.Project}
	}
	unknown, err := unknown(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	var found []erasure.Deletion
	for i, of := range held {
		if unknown[i] && !slices.Contains(found, of) {
			found = append(found, of)
		}
	}
	return found, nil
}

// isUnknown is whether no event led to a thing, and none deletes it with its organization.
const isUnknown = `NOT EXISTS (SELECT FROM events e WHERE e.organization = t.organization AND e.stream = t.stream)
	AND coalesce((SELECT e.name = $3 FROM events e WHERE e.organization = t.organization AND e.stream = $4 || t.organization
		ORDER BY version DESC LIMIT 1), true)`

// unknown tells of each whether no event led to it. What is deleted with its
// organization is known.
func unknown(ctx context.Context, tx pgx.Tx, all []bus.Named) (found []bool, err error) {
	organizations, streams := make([]string, len(all)), make([]string, len(all))
	for i, of := range all {
		organizations[i], streams[i] = of.Organization, of.Stream().Name
	}
	rows, err := tx.Query(ctx, `SELECT `+isUnknown+` FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS t (organization, stream, number) ORDER BY number`,
		organizations, streams, tenants.EventName(tenants.DeletionCancelled{}), bus.DeletionStreams)
	if err != nil {
		return nil, fmt.Errorf("cannot find what no event led to: %w", err)
	}
	if found, err = pgx.CollectRows(rows, pgx.RowTo[bool]); err != nil {
		return nil, fmt.Errorf("cannot find what no event led to: %w", err)
	}
	return found, nil
}

// IsOrganization reports whether there is an organization with an id that
// is not going to be deleted. tx acts as the system.
func IsOrganization(ctx context.Context, tx pgx.Tx, id string) (bool, error) {
	return exists(ctx, tx, `SELECT FROM organizations WHERE organization = $1 AND deletion = ''`, id)
}

// IsReadopted reports whether there is a project or a key with an id. tx
// acts as the system.
func IsReadopted(ctx context.Context, tx pgx.Tx, id string) (bool, error) {
	return exists(ctx, tx, `SELECT FROM projects WHERE id = $1 UNION ALL SELECT FROM api_keys WHERE id = $1`, id)
}

// IsErased reports whether an organization or a project is deleted or is
// going to be. tx acts as the system.
func IsErased(ctx context.Context, tx pgx.Tx, id string) (bool, error) {
	return exists(ctx, tx, `SELECT FROM deletions WHERE id = $1 AND state <> 'cancelled'`, id)
}

func exists(ctx context.Context, tx pgx.Tx, query, id string) (found bool, err error) {
	if err = tx.QueryRow(ctx, `SELECT EXISTS (`+query+`)`, id).Scan(&found); err != nil {
		err = fmt.Errorf("cannot find %q: %w", id, err)
	}
	return found, err
}

// Find returns the orphans, each after what it belongs to. held is what other
// modules hold. What was deleted before anything was lost is no orphan, nor
// is a key whose credential is gone, unless it comes with its project or
// organization. tx acts as the system.
func Find(ctx context.Context, tx pgx.Tx, names *bus.Names, held []erasure.Deletion) ([]Orphan, error) {
	all := candidates(names, held)
	named := make([]bus.Named, len(all))
	for i := range all {
		named[i] = all[i].Named
	}
	lost, err := unknown(ctx, tx, named)
	if err != nil {
		return nil, err
	}
	orphaned := map[string]bool{}
	var orphans []Orphan
	for i, o := range all {
		belongs := orphaned[o.Organization] || o.Key != "" && orphaned[o.Project]
		switch {
		case !lost[i], o.Deleted && !o.Held, o.Key != "" && o.Hash == "" && !belongs:
			continue
		}
		orphaned[o.ID()] = true
		orphans = append(orphans, o)
	}
	return orphans, nil
}

// candidates are all that the topics or other modules know, and what it
// belongs to: organizations first, keys last.
func candidates(names *bus.Names, held []erasure.Deletion) (all []Orphan) {
	at := map[string]int{}
	add := func(of bus.Named, holds bool) {
		i, known := at[of.ID()]
		if !known {
			i = len(all)
			at[of.ID()], all = i, append(all, Orphan{Named: of})
		}
		all[i].Held = all[i].Held || holds
	}
	for _, of := range names.All() {
		add(of, false)
	}
	for _, of := range held {
		add(bus.Named{Organization: of.Organization, Project: of.Project}, true)
		add(bus.Named{Organization: of.Organization}, true)
	}
	for _, of := range names.All() {
		add(bus.Named{Organization: of.Organization}, false)
		if of.Project != "" {
			add(bus.Named{Organization: of.Organization, Project: of.Project}, false)
		}
	}
	for i, o := range all {
		whole, part := all[at[o.Organization]], o
		if o.Project != "" {
			part = all[at[o.Project]]
		}
		all[i].Deleted = o.Deleted || whole.Deleted || part.Deleted
	}
	slices.SortFunc(all, func(a, b Orphan) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.Organization, b.Organization), strings.Compare(a.ID(), b.ID()))
	})
	return all
}

func (o Orphan) rank() int {
	switch {
	case o.Key != "":
		return 2
	case o.Project != "":
		return 1
	}
	return 0
}

// A KeyState is what becomes of a key when it is readopted.
type KeyState string

// The states.
const (
	InForce KeyState = "in force"
	Revoked KeyState = "revoked" // and stays so
	Expired KeyState = "expired" // it is not readopted, nor is a revoked one past its end
	Gone    KeyState = "gone"    // its hash is: nobody can admit it
)

// KeyState returns the state of a key at now.
func (o Orphan) KeyState(now time.Time) KeyState {
	switch {
	case o.Hash == "":
		return Gone
	case o.Credential.ExpiresAt != nil && !o.Credential.ExpiresAt.After(now):
		return Expired
	case o.Revoked:
		return Revoked
	}
	return InForce
}

// Begin begins a unit of work about orphans of one organization, in the
// caller's transaction. What the topics have of their beginning is taken
// back: that of their readoption follows.
func Begin(ctx context.Context, tx pgx.Tx, work *unitofwork.Writer, request unitofwork.Request, organization string, orphans []Orphan) (
	*unitofwork.Unit, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return nil, err
	}
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return nil, err
	}
	for _, o := range orphans {
		if err := bus.WithdrawBeginning(ctx, tx, o.Named); err != nil {
			return nil, err
		}
	}
	return work.Join(ctx, tx, organization, request)
}

// Readopt makes an orphan exist again, as far as anything tells how it was:
// without a name its id is its name. It is idempotent. A key comes back as
// the topics have it: a revoked one revoked, one that is gone or expired
// not at all.
func Readopt(ctx context.Context, u *unitofwork.Unit, o Orphan) error {
	now := u.Now()
	name, at := cmp.Or(o.Name, o.ID()), o.At.UTC().Truncate(time.Microsecond)
	if o.At.IsZero() {
		at = now
	}
	var err error
	switch {
	case o.Key != "":
		if state := o.KeyState(now); state == Gone || state == Expired {
			return nil
		}
		err = readoptKey(ctx, u, o, name, at)
	case o.Project != "":
		cmd := tenants.CreateProject{ID: o.Project, Organization: o.Organization, Name: name, At: at, ReadoptedAt: now}
		_, err = unitofwork.Change(ctx, u, o.Stream(), func(p tenants.Project) ([]tenants.Event, error) { return p.Create(cmd) })
	default:
		cmd := tenants.CreateOrganization{ID: o.Organization, Name: name, Tier: tenants.Tier(o.Tier), At: at, ReadoptedAt: now}
		_, err = unitofwork.Change(ctx, u, o.Stream(), func(organization tenants.Organization) ([]tenants.Event, error) { return organization.Create(cmd) })
	}
	if err != nil {
		return fmt.Errorf("cannot readopt %s: %w", o.ID(), err)
	}
	return nil
}

// unseen stands for the four characters at each end of a secret: no topic has them.
const unseen = "????"

func readoptKey(ctx context.Context, u *unitofwork.Unit, o Orphan, name string, at time.Time) error {
	c := *o.Credential
	cmd := tenants.IssueAPIKey{
		ID: o.Key, Organization: o.Organization, Project: o.Project, Environment: tenants.Environment(c.Environment), Name: name,
		Digest: tenants.SecretDigest{Hash: o.Hash, First: unseen, Last: unseen}, At: at, ReadoptedAt: u.Now(),
		RatePerMinute: c.RatePerMinute, Access: tenants.Access(c.Access), // empty: full
		Sending: tenants.Sending{Lenient: c.Lenient, Origins: c.Origins},
	}
	if c.ExpiresAt != nil {
		cmd.ExpiresAt = *c.ExpiresAt
	}
	_, err := unitofwork.Change(ctx, u, o.Stream(), func(k tenants.APIKey) ([]tenants.Event, error) { return k.Issue(cmd) })
	if err != nil || !o.Revoked {
		return err
	}
	_, err = unitofwork.Change(ctx, u, o.Stream(), func(k tenants.APIKey) ([]tenants.Event, error) {
		return k.Revoke(tenants.Revoke{Reason: "Revoked before the database was restored to an earlier hour.", At: u.Now()})
	})
	return err
}

// Erase begins the deletion of an orphaned organization or project. It
// exists for that, without its name, so that all that was published of it
// is withdrawn as with any other. It is idempotent.
func Erase(ctx context.Context, u *unitofwork.Unit, o Orphan) error {
	nameless := o
	nameless.Name = ""
	if err := Readopt(ctx, u, nameless); err != nil {
		return err
	}
	of := tenants.Deletable{Organization: o.Organization, Project: o.Project}
	_, err := unitofwork.Change(ctx, u, unitofwork.Stream(o.Organization, "deletion", of.ID()),
		func(d tenants.Deletion) ([]tenants.Event, error) { return d.Request(of, u.Now(), 0) })
	if err != nil {
		return fmt.Errorf("cannot begin to erase %s: %w", o.ID(), err)
	}
	return nil
}
