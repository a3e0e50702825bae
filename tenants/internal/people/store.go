package people

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
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

func insertInvitation(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.InvitationMade) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO invitations (organization, id, email, role, made_by, code_hash, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		e.Organization, e.Invitation, e.Email, e.Role, e.By, e.Digest.Hash, e.At, e.ExpiresAt)
}

const updateInvitation = `UPDATE invitations SET `

const whereInvitation = ` WHERE organization = $1 AND id = $2`

func resendInvitation(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.InvitationResent) error {
	return query.ExactlyOne(ctx, tx, updateInvitation+`code_hash = $3, expires_at = $4, made_by = coalesce(nullif($5, ''), made_by)`+whereInvitation,
		at.Organization, e.Invitation, e.Digest.Hash, e.ExpiresAt, e.By)
}

func revokeInvitation(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.InvitationRevoked) error {
	return query.ExactlyOne(ctx, tx, updateInvitation+`revoked_at = $3`+whereInvitation, at.Organization, e.Invitation, e.At)
}

func acceptInvitation(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.InvitationAccepted) error {
	return query.ExactlyOne(ctx, tx, updateInvitation+`accepted_at = $3, member = $4`+whereInvitation,
		at.Organization, e.Invitation, e.At, e.Member)
}

const selectInvitations = `
SELECT organization, id, email, role, made_by, code_hash, created_at, expires_at, revoked_at, accepted_at, member
FROM (SELECT i.* FROM invitations i JOIN organizations o USING (organization) WHERE o.deletion = '') invitations `

func scanInvitation(row pgx.CollectableRow) (i tenants.Invitation, err error) {
	var revoked, accepted *time.Time
	err = row.Scan(&i.Organization, &i.ID, &i.Email, &i.Role, &i.By, &i.CodeHash, &i.MadeAt, &i.ExpiresAt, &revoked, &accepted, &i.Member)
	i.RevokedAt, i.AcceptedAt = query.OrZero(revoked), query.OrZero(accepted)
	return i, err
}

// Invitation returns one invitation, or ErrNotFound.
func (s Store) Invitation(ctx context.Context, as pg.Organization, id string) (tenants.Invitation, error) {
	return query.One(ctx, s.reader, as, scanInvitation, selectInvitations+`WHERE `+query.Visible+` AND id = $2`, id)
}

// InvitationByCode returns the invitation of any
// organization whose code has a hash, or ErrNotFound.
func (s Store) InvitationByCode(ctx context.Context, hash string) (tenants.Invitation, error) {
	return query.One(ctx, s.reader, tenants.Installation, scanInvitation, selectInvitations+`WHERE `+query.Visible+` AND code_hash = $2`, hash)
}

// Invitations lists at most limit invitations of
// an organization after a position, in any state.
func (s Store) Invitations(ctx context.Context, as, organization pg.Organization, after query.Position, limit int) ([]tenants.Invitation, error) {
	return query.List(ctx, s.reader, as, scanInvitation, selectInvitations+
		`WHERE `+query.Visible+` AND organization = $2 AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5`,
		organization, after.At, after.ID, limit)
}

const unsettled = ` AND revoked_at IS NULL AND accepted_at IS NULL`

// UnsettledInvitations lists at most limit invitations of an organization
// before a position, newest first, neither accepted nor revoked.
func (s Store) UnsettledInvitations(ctx context.Context, organization pg.Organization, before query.Position, limit int) ([]tenants.Invitation, error) {
	return query.List(ctx, s.reader, organization, scanInvitation, selectInvitations+`
		WHERE organization = $1 AND ($3 = '' OR (created_at, id) < ($2, $3))`+unsettled+`
		ORDER BY created_at DESC, id DESC LIMIT $4`, before.At, before.ID, limit)
}

// InvitationsBy lists the open invitations
// that a member created or sent last.
func (s Store) InvitationsBy(ctx context.Context, organization pg.Organization, member string) ([]tenants.Invitation, error) {
	return query.List(ctx, s.reader, organization, scanInvitation, selectInvitations+`
		WHERE organization = $1 AND made_by = $2`+unsettled+` ORDER BY created_at, id`, member)
}

// IsMember reports whether an organization has a member with a normal address.
func (s Store) IsMember(ctx context.Context, organization pg.Organization, email string) (bool, error) {
	return query.One(ctx, s.reader, organization, pgx.RowTo[bool],
		`SELECT EXISTS (SELECT FROM members WHERE organization = $1 AND email = $2 AND removed_at IS NULL)`, email)
}

// IsInvited reports whether an organization
// has an open invitation for a normal address.
func (s Store) IsInvited(ctx context.Context, organization pg.Organization, email string) (bool, error) {
	return query.One(ctx, s.reader, organization, pgx.RowTo[bool],
		`SELECT EXISTS (SELECT FROM invitations WHERE organization = $1 AND email = $2`+unsettled+`)`, email)
}

const (
	// after they ended: holders of the code get the reason
	invitationsKept = 30 * 24 * time.Hour
	// after their removal: their sessions, devices and failures are over by then
	removedKept = 100 * 24 * time.Hour
)

// Tables are the room's tables, for a prune.Pruner.
// Members are removed after what other rooms keep of them.
func Tables(clock func() time.Time) []prune.Table {
	return []prune.Table{
		prune.Rows{
			Table: "invitations", Bound: "200 open ones of an organization, and 30 days of those that are over", Age: "least(accepted_at, revoked_at, expires_at)",
			Before: prune.Ago(invitationsKept, clock),
		},
		prune.Rows{
			Table: "members", Bound: "500 of an organization, and 100 days of those who were removed", Age: "removed_at", Before: prune.Ago(removedKept, clock),
			Only: `NOT EXISTS (SELECT FROM sessions s WHERE s.organization = t.organization AND s.member = t.id)
				AND NOT EXISTS (SELECT FROM passkeys p WHERE p.organization = t.organization AND p.member = t.id)
				AND NOT EXISTS (SELECT FROM devices d WHERE d.organization = t.organization AND d.member = t.id)
				AND NOT EXISTS (SELECT FROM sign_in_failures f WHERE f.organization = t.organization AND f.member = t.id)`,
		},
	}
}
