package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/tenants"
)

// Events is the store of this module's events.
type Events = eventstorepg.Store[tenants.Event]

type recorded = eventstore.Recorded[tenants.Event]

// NewEvents returns the store: whatever it appends is projected and audited in the same transaction.
func NewEvents(pool *pgxpool.Pool) *Events {
	codec := eventstore.Codec[tenants.Event]{Encode: tenants.EncodeEvent, Decode: tenants.DecodeEvent}
	var events *Events
	events = eventstorepg.New(pool, codec, func(ctx context.Context, tx pgx.Tx, appended []recorded) error {
		if err := Project(ctx, tx, appended); err != nil {
			return err
		}
		return audit(ctx, tx, events, appended[0].Stream.Organization)
	})
	return events
}

// Project brings the tables forward by events.
func Project(ctx context.Context, tx pgx.Tx, events []recorded) error {
	for _, recorded := range events {
		if err := project(ctx, tx, recorded); err != nil {
			return fmt.Errorf("cannot project %q version %d: %w", recorded.Stream, recorded.Version, err)
		}
	}
	return nil
}

func project(ctx context.Context, tx pgx.Tx, r recorded) error { //nolint:funlen // two lines for each event of the closed set
	organization, origin := r.Stream.Organization, tenants.OriginOf(r.Metadata)
	switch e := r.Event.(type) {
	case tenants.OrganizationCreated:
		return insertOrganization(ctx, tx, e)
	case tenants.OrganizationRenamed:
		return renameOrganization(ctx, tx, e)
	case tenants.ProjectCreated:
		return insertProject(ctx, tx, e)
	case tenants.ProjectRenamed:
		return renameProject(ctx, tx, organization, e)
	case tenants.APIKeyIssued:
		return insertAPIKey(ctx, tx, e, tenants.OriginOf(r.Metadata))
	case tenants.APIKeyRevoked:
		return revokeAPIKey(ctx, tx, organization, e)
	case tenants.APIKeyRotated:
		return rotateAPIKey(ctx, tx, organization, e)
	case tenants.APIKeyRenamed:
		return renameAPIKey(ctx, tx, organization, e)
	case tenants.APIKeyLimited:
		return limitAPIKey(ctx, tx, organization, e)
	case tenants.APIKeyAccessChanged:
		return changeAPIKeyAccess(ctx, tx, organization, e)
	case tenants.APIKeyCurtailed:
		return curtailAPIKey(ctx, tx, organization, e)
	case tenants.APIKeyExposed:
		return exposeAPIKey(ctx, tx, organization, e)
	case tenants.SecurityPolicySet:
		return setSecurityPolicy(ctx, tx, e)
	case tenants.ServiceTokenIssued:
		return insertServiceToken(ctx, tx, e)
	case tenants.ServiceTokenRevoked:
		return revokeServiceToken(ctx, tx, organization, e)
	case tenants.MemberAdded:
		return insertMember(ctx, tx, e)
	case tenants.MemberRoleChanged:
		return changeMemberRole(ctx, tx, organization, e)
	case tenants.MemberRemoved:
		return removeMember(ctx, tx, organization, e)
	case tenants.MemberPasswordChanged:
		return changePassword(ctx, tx, organization, e)
	case tenants.MemberResetCodeIssued:
		return issueResetCode(ctx, tx, organization, e)
	case tenants.MemberIdentified:
		return identifyMember(ctx, tx, organization, e)
	case tenants.InvitationMade:
		return insertInvitation(ctx, tx, e)
	case tenants.InvitationResent:
		return resendInvitation(ctx, tx, organization, e)
	case tenants.InvitationRevoked:
		return revokeInvitation(ctx, tx, organization, e)
	case tenants.InvitationAccepted:
		return acceptInvitation(ctx, tx, organization, e)
	case tenants.PasskeyRegistered:
		return insertPasskey(ctx, tx, e)
	case tenants.PasskeyUsed:
		return usePasskey(ctx, tx, organization, e)
	case tenants.PasskeySuspected:
		return suspectPasskey(ctx, tx, organization, e)
	case tenants.PasskeyRemoved:
		return removePasskey(ctx, tx, organization, e)
	case tenants.SessionStarted:
		return insertSession(ctx, tx, e, origin)
	case tenants.SessionRenewed:
		return prolongSession(ctx, tx, organization, renewal{e.Session, e.Digest, e.At, e.ExpiresAt, origin})
	case tenants.SessionConfirmed:
		return prolongSession(ctx, tx, organization, renewal{e.Session, e.Digest, e.At, e.ExpiresAt, origin})
	case tenants.SessionEnded:
		return endSession(ctx, tx, organization, e)
	case tenants.OwnerCodeIssued, tenants.OwnerCodeUsed, // whose stream is read where it is asked for
		tenants.SessionRoleChanged,  // the role is the member's
		tenants.MemberSignInsFailed: // it is in the audit
		return nil
	}
	panic(fmt.Sprintf("BUG: no projection for %T", r.Event))
}
