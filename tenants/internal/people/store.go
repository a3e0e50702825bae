package people

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func insertMember(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.MemberAdded) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO members (organization, id, email, name, role, password_hash, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		e.Organization, e.Member, e.Email, e.Name, e.Role, e.PasswordHash, e.At)
}

const updateMember = `UPDATE members SET `

// clearIdentity removes a member's identity at
// the provider, until the next sign-in by it.
const clearIdentity = `identity_issuer = '', identity_subject = ''`

const whereMember = ` WHERE organization = $1 AND id = $2`

func changeMemberRole(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.MemberRoleChanged) error {
	return query.ExactlyOne(ctx, tx, updateMember+`role = $3`+whereMember, at.Organization, e.Member, e.Role)
}

func removeMember(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.MemberRemoved) error {
	return query.ExactlyOne(ctx, tx, updateMember+`removed_at = $3, password_hash = '', reset_hash = NULL, reset_expires_at = NULL,
		without_mails = '{}', `+clearIdentity+whereMember,
		at.Organization, e.Member, e.At)
}

func changePassword(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.MemberPasswordChanged) error {
	changed := updateMember + `password_hash = $3, password_at = $4, reset_hash = NULL, reset_expires_at = NULL`
	if e.Reset {
		changed += `, ` + clearIdentity
	}
	return query.ExactlyOne(ctx, tx, changed+whereMember, at.Organization, e.Member, e.PasswordHash, e.At)
}

func identifyMember(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.MemberIdentified) error {
	return query.ExactlyOne(ctx, tx, updateMember+`identity_issuer = $3, identity_subject = $4`+whereMember, at.Organization, e.Member, e.Issuer, e.Subject)
}

func chooseMails(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.MemberMailsChosen) error {
	return query.ExactlyOne(ctx, tx, updateMember+`without_mails = $3`+whereMember, at.Organization, e.Member, e.Without)
}

func issueResetCode(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.MemberResetCodeIssued) error {
	return query.ExactlyOne(ctx, tx, updateMember+`reset_hash = $3, reset_expires_at = $4`+whereMember,
		at.Organization, e.Member, e.Digest.Hash, e.ExpiresAt)
}

// A Store reads members and their invitations.
type Store struct{ reader *query.Reader }

// NewStore returns the store of a reader.
func NewStore(reader *query.Reader) Store { return Store{reader} }

// Projections maps the events of members and invitations to their tables.
func Projections() unitofwork.Projections {
	return unitofwork.Join(
		unitofwork.On(insertMember),
		unitofwork.On(changeMemberRole),
		unitofwork.On(removeMember),
		unitofwork.On(changePassword),
		unitofwork.On(issueResetCode),
		unitofwork.On(identifyMember),
		unitofwork.On(chooseMails),
		unitofwork.On(insertInvitation),
		unitofwork.On(resendInvitation),
		unitofwork.On(revokeInvitation),
		unitofwork.On(acceptInvitation),
		unitofwork.Unprojected[tenants.OwnerCodeIssued](), // read from its stream
		unitofwork.Unprojected[tenants.OwnerCodeUsed](),
	)
}

const selectMembers = `
SELECT organization, id, email, name, role, password_hash, coalesce(password_at, created_at), created_at, removed_at,
       coalesce(reset_hash, ''), reset_expires_at, identity_issuer, identity_subject, without_mails
FROM (SELECT m.* FROM members m JOIN organizations o USING (organization) WHERE o.deletion = '') members `

func scanMember(row pgx.CollectableRow) (m tenants.Member, err error) {
	var removed, resetExpires *time.Time
	err = row.Scan(&m.Organization, &m.ID, &m.Email, &m.Name, &m.Role, &m.PasswordHash, &m.PasswordAt, &m.AddedAt, &removed,
		&m.Reset.Hash, &resetExpires, &m.Identity.Issuer, &m.Identity.Subject, &m.WithoutMails)
	m.RemovedAt, m.Reset.ExpiresAt = query.OrZero(removed), query.OrZero(resetExpires)
	return m, err
}

// Member returns one member who was not removed, or ErrNotFound.
func (s Store) Member(ctx context.Context, as pg.Organization, id string) (tenants.Member, error) {
	return query.One(ctx, s.reader, as, scanMember, selectMembers+`WHERE `+query.Visible+` AND id = $2 AND removed_at IS NULL`, id)
}

// MemberEver returns one member, who may have been removed, or ErrNotFound.
func (s Store) MemberEver(ctx context.Context, as pg.Organization, id string) (tenants.Member, error) {
	return query.One(ctx, s.reader, as, scanMember, selectMembers+`WHERE `+query.Visible+` AND id = $2`, id)
}

// MemberByEmail returns the member of any organization with a normal address,
// or ErrNotFound. It is for the sign-in, before the organization is known.
func (s Store) MemberByEmail(ctx context.Context, email string) (tenants.Member, error) {
	return query.One(ctx, s.reader, tenants.Installation, scanMember, selectMembers+`WHERE `+query.Visible+` AND email = $2 AND removed_at IS NULL`, email)
}

// MembersByEmail lists the members of all
// organizations with some normal addresses.
func (s Store) MembersByEmail(ctx context.Context, emails []string) ([]tenants.Member, error) {
	return query.List(ctx, s.reader, tenants.Installation, scanMember, selectMembers+`WHERE `+query.Visible+` AND email = ANY($2) AND removed_at IS NULL`, emails)
}

// MemberByIdentity returns the member of any organization with an
// identity at a provider, or ErrNotFound.
func (s Store) MemberByIdentity(ctx context.Context, identity tenants.ProviderIdentity) (tenants.Member, error) {
	return query.One(ctx, s.reader, tenants.Installation, scanMember, selectMembers+
		`WHERE `+query.Visible+` AND identity_issuer = $2 AND identity_issuer <> '' AND identity_subject = $3`, identity.Issuer, identity.Subject)
}

// MemberByResetCode returns the member of any organization with
// an open code of a hash, or ErrNotFound.
func (s Store) MemberByResetCode(ctx context.Context, hash string) (tenants.Member, error) {
	return query.One(ctx, s.reader, tenants.Installation, scanMember, selectMembers+`WHERE `+query.Visible+` AND reset_hash = $2`, hash)
}

// Members lists at most limit members of an organization after a
// position, without those who were removed.
func (s Store) Members(ctx context.Context, as, organization pg.Organization, after query.Position, limit int) ([]tenants.Member, error) {
	return query.List(ctx, s.reader, as, scanMember, selectMembers+
		`WHERE `+query.Visible+` AND organization = $2 AND removed_at IS NULL AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5`,
		organization, after.At, after.ID, limit)
}

// OtherOwners counts the owners of an organization beside one member.
func (s Store) OtherOwners(ctx context.Context, organization pg.Organization, member string) (int, error) {
	return query.One(ctx, s.reader, organization, pgx.RowTo[int],
		`SELECT count(*)::int FROM members WHERE organization = $1 AND id <> $2 AND role = $3 AND removed_at IS NULL`,
		member, tenants.Owner)
}

// HasMembers reports whether the installation has a member.
func (s Store) HasMembers(ctx context.Context) (bool, error) {
	return query.One(ctx, s.reader, tenants.Installation, pgx.RowTo[bool],
		`SELECT EXISTS (SELECT FROM members WHERE `+query.Visible+` AND removed_at IS NULL)`)
}

// SignInMethods are the ways to sign in here, beside passwords.
type SignInMethods struct {
	Passkeys bool
	Provider string // issuer; empty: there is none
}

const hasSignInMethod = ` AND removed_at IS NULL AND (
	$2 AND EXISTS (SELECT FROM passkeys p WHERE p.organization = members.organization AND p.member = members.id AND p.suspected_at IS NULL)
	OR $3 <> '' AND identity_issuer = $3)`

// OwnersWithoutPassword is how many owners of an
// organization, but for one, can sign in without a password.
func (s Store) OwnersWithoutPassword(ctx context.Context, organization pg.Organization, methods SignInMethods, except string) (int, error) {
	return query.One(ctx, s.reader, organization, pgx.RowTo[int],
		`SELECT count(*) FROM members WHERE organization = $1 AND role = 'owner' AND id <> $4`+hasSignInMethod, methods.Passkeys, methods.Provider, except)
}

// MembersWithoutPassword is how many members of
// an organization can sign in without a password.
func (s Store) MembersWithoutPassword(ctx context.Context, organization pg.Organization, methods SignInMethods) (int, error) {
	return query.One(ctx, s.reader, organization, pgx.RowTo[int],
		`SELECT count(*) FROM members WHERE organization = $1`+hasSignInMethod, methods.Passkeys, methods.Provider)
}

// RoleOf is the present role of an organization's member, or ErrNotFound.
func RoleOf(ctx context.Context, in *query.Reader, organization pg.Organization, member string) (tenants.Role, error) {
	found, err := NewStore(in).Member(ctx, organization, member)
	return found.Role, err
}

// count is how many members or open invitations an organization has.
func count(ctx context.Context, in *query.Reader, organization pg.Organization, what tenants.Countable, _ time.Time) (int, error) {
	counted := `members WHERE organization = $1 AND removed_at IS NULL`
	switch what {
	case tenants.CountMembers:
	case tenants.CountInvitations:
		counted = `invitations WHERE organization = $1` + unsettled
	default:
		panic(fmt.Sprintf("BUG: nobody counts %q", what))
	}
	return query.One(ctx, in, organization, pgx.RowTo[int], `SELECT count(*) FROM `+counted)
}

func counted(what tenants.Countable) unitofwork.Counted {
	return unitofwork.Counted{Count: count, As: []tenants.Countable{what}}
}

// Erasable are the room's tables, in the order of erasure.
func Erasable() []erasure.Table {
	return []erasure.Table{erasure.Rows("invitations", erasure.OfOrganization), erasure.Rows("members", erasure.OfOrganization)}
}
