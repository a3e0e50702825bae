package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/readopting"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// An Orphan is an organization, project or key that the topics or other
// modules know, and tenants does not.
type Orphan = readopting.Orphan

// What becomes of a key that is readopted: see readopting.KeyState.
const (
	InForce = readopting.InForce
	Expired = readopting.Expired
	Gone    = readopting.Gone
)

// Unknown returns the organizations and projects of some that tenants does
// not know. tx acts as the system, in the module's schema.
func Unknown(ctx context.Context, tx pgx.Tx, held []erasure.Deletion) ([]erasure.Deletion, error) {
	return readopting.Unknown(ctx, tx, held)
}

// IsOrganization reports whether tenants has an organization that is not
// going to be deleted. tx is as for Unknown.
func IsOrganization(ctx context.Context, tx pgx.Tx, id string) (bool, error) {
	return readopting.IsOrganization(ctx, tx, id)
}

// IsReadopted reports whether tenants has a project or a key, so that an
// earlier run may have readopted it. tx is as for Unknown.
func IsReadopted(ctx context.Context, tx pgx.Tx, id string) (bool, error) {
	return readopting.IsReadopted(ctx, tx, id)
}

// IsErased reports whether an organization or a project is deleted or is
// going to be. tx is as for Unknown.
func IsErased(ctx context.Context, tx pgx.Tx, id string) (bool, error) {
	return readopting.IsErased(ctx, tx, id)
}

// Orphanage finds orphans and decides about them, with no service running.
type Orphanage struct {
	pool  *pgxpool.Pool
	names *bus.Names
	work  *unitofwork.Writer
	by    unitofwork.Request
}

// OpenOrphanage reads what weir.tenants.v1 and weir.credentials.v1 tell.
// command is what decides, for the audit.
func OpenOrphanage(ctx context.Context, pool *pgxpool.Pool, brokers []string, dialer *sharedbus.Dialer, clock func() time.Time, command string,
) (*Orphanage, error) {
	o := &Orphanage{
		pool: pool, names: bus.NewNames(), by: unitofwork.AtTheServer(command + ", run by " + CurrentUser()),
		work: unitofwork.NewWriter(unitofwork.Config{
			Events: projections.NewEvents(pool), Views: query.NewReader(pool), Clock: clock, IDs: newID, Random: rand.Reader, RoleOf: people.RoleOf,
			Exists: registry.Exists,
		}),
	}
	logger := slog.New(slog.DiscardHandler)
	from := state.Config{Brokers: brokers, Dialer: dialer, Topic: contract.TopicTenants}
	if err := state.Once(ctx, from, logger, o.names.ApplyFact); err != nil {
		return nil, err
	}
	from.Topic = contract.TopicCredentials
	records, err := readCredentials(ctx, from, logger)
	for _, record := range records {
		o.names.ApplyCredential(record)
	}
	return o, err
}

// Find returns the orphans, each after what it belongs to. held is what
// other modules hold.
func (o *Orphanage) Find(ctx context.Context, held []erasure.Deletion) (found []Orphan, err error) {
	err = pg.InTxAsSystem(ctx, o.pool, func(tx pgx.Tx) error {
		found, err = readopting.Find(ctx, tx, o.names, held)
		return err
	})
	return found, err
}

// Continue has new events go on behind all that the topics have of others.
func (o *Orphanage) Continue(ctx context.Context) error {
	return pg.InTxAsSystem(ctx, o.pool, func(tx pgx.Tx) error { return o.names.Continue(ctx, tx) })
}

// CheckOwner returns why nobody with an address can be invited to an
// organization as its first owner, or nil.
func (o *Orphanage) CheckOwner(ctx context.Context, organization, email string) error {
	if !tenants.IsEmail(email) {
		return fmt.Errorf("%q is no e-mail address: use one such as ada@example.com", email)
	}
	member, err := people.NewStore(query.NewReader(o.pool)).MemberByEmail(ctx, tenants.NormalEmail(email))
	if errors.Is(err, tenants.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is a member of %s, and nobody is of two: name another owner for %s", email, member.Organization, organization)
}

// CheckOwnerless returns an error if an organization has members, and so
// needs no first owner.
func (o *Orphanage) CheckOwnerless(ctx context.Context, organization string) error {
	of := pg.Organization(organization)
	members, err := people.NewStore(query.NewReader(o.pool)).Members(ctx, of, of, query.Position{}, 1)
	if err == nil && len(members) > 0 {
		err = fmt.Errorf("organization %q: %w", organization, people.ErrHasMembers)
	}
	return err
}

// Readopt makes orphans of one organization exist again, whole or not at
// all. With an owner, that address is invited as the first owner, and the
// secret of the invitation is returned; without orphans nothing else
// happens. It is idempotent, but for the secret: the newest one counts.
func (o *Orphanage) Readopt(ctx context.Context, organization string, orphans []Orphan, owner string) (code tenants.Secret, err error) {
	err = o.decide(ctx, organization, orphans, func(u *unitofwork.Unit) error {
		for _, orphan := range orphans {
			if err := readopting.Readopt(ctx, u, orphan); err != nil {
				return err
			}
		}
		if owner == "" {
			return nil
		}
		code, err = people.InviteOwner(ctx, u, organization, owner)
		return err
	})
	return code, err
}

// Erase begins the deletion of an orphaned organization or project: tenants
// goes on with it as soon as it runs.
func (o *Orphanage) Erase(ctx context.Context, orphan Orphan) error {
	return o.decide(ctx, orphan.Organization, []Orphan{orphan}, func(u *unitofwork.Unit) error { return readopting.Erase(ctx, u, orphan) })
}

func (o *Orphanage) decide(ctx context.Context, organization string, orphans []Orphan, decide func(*unitofwork.Unit) error) error {
	return pg.InTxAsSystem(ctx, o.pool, func(tx pgx.Tx) error {
		u, err := readopting.Begin(ctx, tx, o.work, o.by, organization, orphans)
		if err != nil {
			return err
		}
		if len(orphans) == 0 || orphans[0].ID() != organization {
			if err := u.Exists(ctx, u.Reader(), pg.Organization(organization)); err != nil {
				return fmt.Errorf("organization %q, which may be deleted: %w", organization, err)
			}
		}
		return decide(u)
	})
}

// InvitationLink is the address of the page on which an invitation is taken.
func InvitationLink(origin string, code tenants.Secret) string {
	return Link(origin, people.JoinPath, code)
}
