package tenants

import (
	"fmt"
	"strings"
	"time"
)

// A Subject is a thing whose changes are audited: a state that events bring forward, and what everybody who reads the
// audit may know of it. Secrets and their hashes are no part of that.
type Subject interface {
	Apply(event Event)
	audited() (Target, Fields)
}

// A Target is what a change is about.
type Target struct {
	Kind string // "api_key"
	ID   string
	Name string // at the time; may be empty
}

// A Change is how an event reads in the audit: one thing before and after it.
type Change struct {
	Action string // "api_key.revoked"
	At     time.Time
	Target Target
	Before Fields // nil where there was nothing
	After  Fields
}

// auditForm is how an event is told.
type auditForm struct {
	action  string
	at      time.Time
	subject Subject // nothing yet
}

// auditFormOf says how each event is told: its action, and which thing it is about. Actions are data, like names of events.
func auditFormOf(event Event) (auditForm, error) { //nolint:funlen // two lines for each event of the closed set
	switch e := event.(type) {
	case OrganizationCreated:
		return auditForm{"organization.created", e.At, &Organization{}}, nil
	case OrganizationRenamed:
		return auditForm{"organization.renamed", e.At, &Organization{}}, nil
	case ProjectCreated:
		return auditForm{"project.created", e.At, &Project{}}, nil
	case ProjectRenamed:
		return auditForm{"project.renamed", e.At, &Project{}}, nil
	case APIKeyIssued:
		return auditForm{"api_key.issued", e.At, &APIKey{}}, nil
	case APIKeyRevoked:
		return auditForm{"api_key.revoked", e.At, &APIKey{}}, nil
	case APIKeyRotated:
		return auditForm{"api_key.rotated", e.At, &APIKey{}}, nil
	case APIKeyRenamed:
		return auditForm{"api_key.renamed", e.At, &APIKey{}}, nil
	case APIKeyLimited:
		return auditForm{"api_key.limited", e.At, &APIKey{}}, nil
	case APIKeyAccessChanged:
		return auditForm{"api_key.access_changed", e.At, &APIKey{}}, nil
	case APIKeyExposed:
		return auditForm{"api_key.exposed", e.At, &APIKey{}}, nil
	case APIKeyCurtailed:
		return auditForm{"api_key.curtailed", e.At, &APIKey{}}, nil
	case SecurityPolicySet:
		return auditForm{"security_policy.set", e.At, &SecurityPolicy{}}, nil
	case ServiceTokenIssued:
		return auditForm{"service_token.issued", e.At, &ServiceToken{}}, nil
	case ServiceTokenRevoked:
		return auditForm{"service_token.revoked", e.At, &ServiceToken{}}, nil
	case MemberAdded:
		return auditForm{"member.added", e.At, &Member{}}, nil
	case MemberRoleChanged:
		return auditForm{"member.role_changed", e.At, &Member{}}, nil
	case MemberRemoved:
		return auditForm{"member.removed", e.At, &Member{}}, nil
	case MemberPasswordChanged:
		return auditForm{"member.password_changed", e.At, &Member{}}, nil
	case MemberResetCodeIssued:
		return auditForm{"member.reset_code_issued", e.At, &Member{}}, nil
	case MemberIdentified:
		return auditForm{"member.identified", e.At, &Member{}}, nil
	case InvitationMade:
		return auditForm{"invitation.made", e.At, &Invitation{}}, nil
	case InvitationResent:
		return auditForm{"invitation.resent", e.At, &Invitation{}}, nil
	case InvitationRevoked:
		return auditForm{"invitation.revoked", e.At, &Invitation{}}, nil
	case InvitationAccepted:
		return auditForm{"invitation.accepted", e.At, &Invitation{}}, nil
	case OwnerCodeIssued:
		return auditForm{"owner_code.issued", e.At, &OwnerCode{}}, nil
	case OwnerCodeUsed:
		return auditForm{"owner_code.used", e.At, &OwnerCode{}}, nil
	case SessionStarted:
		return auditForm{"session.started", e.At, &Session{}}, nil
	case SessionRoleChanged:
		return auditForm{"session.role_changed", e.At, &Session{}}, nil
	case SessionRenewed:
		return auditForm{"session.renewed", e.At, &Session{}}, nil
	case SessionConfirmed:
		return auditForm{"session.confirmed", e.At, &Session{}}, nil
	case SessionEnded:
		return auditForm{"session.ended", e.At, &Session{}}, nil
	case PasskeyRegistered:
		return auditForm{"passkey.registered", e.At, &Passkey{}}, nil
	case PasskeyUsed:
		return auditForm{"passkey.used", e.At, &Passkey{}}, nil
	case PasskeySuspected:
		return auditForm{"passkey.suspected", e.At, &Passkey{}}, nil
	case PasskeyRemoved:
		return auditForm{"passkey.removed", e.At, &Passkey{}}, nil
	case MemberSignInsFailed:
		return auditForm{"member.sign_ins_failed", e.At, &SignInFailures{}}, nil
	}
	return auditForm{}, fmt.Errorf("event %T has no form in the audit: give it one in auditFormOf", event)
}

// Audit brings a subject forward by an event, and says how that reads. A subject of which nothing is known yet is nil.
func Audit(subject Subject, event Event) (Subject, Change, error) {
	form, err := auditFormOf(event)
	if err != nil {
		return nil, Change{}, err
	}
	change := Change{Action: form.action, At: form.at}
	if subject == nil {
		subject = form.subject
	} else if target, fields := subject.audited(); target.ID != "" {
		change.Before = fields.known()
	}
	subject.Apply(event)
	var after Fields
	change.Target, after = subject.audited()
	change.After = after.known()
	return subject, change, nil
}

// ActorName is what a subject is called where it decides something itself: a member with the e-mail address.
func ActorName(subject Subject) string {
	if subject == nil {
		return ""
	}
	target, fields := subject.audited()
	if email, _ := fields["email"].(string); email != "" {
		return target.Name + " (" + email + ")"
	}
	return target.Name
}

func (o *Organization) audited() (Target, Fields) {
	return Target{"organization", o.ID, o.Name}, Fields{"name": o.Name, "tier": string(o.Tier)}
}

func (p *Project) audited() (Target, Fields) {
	return Target{"project", p.ID, p.Name}, Fields{"name": p.Name}
}

func (k *APIKey) audited() (Target, Fields) {
	return Target{"api_key", k.ID, k.Name}, Fields{
		"name": k.Name, "project": k.Project, "environment": string(k.Environment), "key": k.Digest.shown(APIKeyPrefix),
		"expires_at": k.ExpiresAt, "state": string(k.Revocation.state()), "reason": k.Revocation.Reason,
		"rate_per_minute": k.RatePerMinute, "replaces": k.Replaces, "rotated_to": k.RotatedTo, "exposed": k.exposed(),
		"access": string(k.Access.unlessFull()),
	}
}

// exposed is how the key was exposed, in short.
func (k *APIKey) exposed() (texts []string) {
	for _, e := range k.Exposures {
		texts = append(texts, strings.TrimSpace(string(e.Kind)+" "+e.Where))
	}
	return texts
}

func (s *SecurityPolicy) audited() (Target, Fields) {
	return Target{"security_policy", s.Organization, ""}, Fields{
		"leaked_keys": string(s.LeakedKeys), "plain_http_keys": string(s.PlainHTTPKeys), "passwords_off": s.PasswordsOff,
	}
}

func (s *ServiceToken) audited() (Target, Fields) {
	return Target{"service_token", s.ID, s.Name}, Fields{
		"name": s.Name, "scopes": s.Scopes, "token": s.Digest.shown(ServiceTokenPrefix), "configured": s.Configured,
		"state": string(s.Revocation.state()), "reason": s.Revocation.Reason,
	}
}

func (m *Member) audited() (Target, Fields) {
	return Target{"member", m.ID, m.Name}, Fields{
		"name": m.Name, "email": m.Email, "role": string(m.Role), "removed_at": m.RemovedAt,
		"password_changed_at": changedAfter(m.AddedAt, m.PasswordAt), "reset_code_expires_at": m.Reset.ExpiresAt,
		"identity_provider": m.Identity.Issuer, "identity": m.Identity.Subject,
	}
}

// changedAfter is when something was changed; zero where it is as it was at the beginning.
func changedAfter(beginning, at time.Time) time.Time {
	if at.Equal(beginning) {
		return time.Time{}
	}
	return at
}

func (i *Invitation) audited() (Target, Fields) {
	return Target{"invitation", i.ID, i.Email}, Fields{
		"email": i.Email, "role": string(i.Role), "by": i.By, "expires_at": i.ExpiresAt, "revoked_at": i.RevokedAt,
		"accepted_at": i.AcceptedAt, "member": i.Member,
	}
}

func (o *OwnerCode) audited() (Target, Fields) {
	if o.Digest.Hash == "" {
		return Target{Kind: "owner_code"}, nil
	}
	return Target{"owner_code", o.Digest.First + o.Digest.Last, ""}, Fields{
		"code": o.Digest.shown(OwnerCodePrefix), "expires_at": o.ExpiresAt, "used_at": o.UsedAt,
		"organization": o.Organization, "member": o.Member,
	}
}

func (s *Session) audited() (Target, Fields) {
	return Target{"session", s.ID, ""}, Fields{
		"member": s.Member, "role": string(s.Role), "method": string(s.Method), "expires_at": s.ExpiresAt,
		"state": string(s.Revocation.state()), "reason": s.Revocation.Reason,
	}
}

func (p *Passkey) audited() (Target, Fields) {
	return Target{"passkey", p.ID, p.Name}, Fields{
		"name": p.Name, "member": p.Member, "used_at": p.UsedAt, "suspected_at": p.SuspectedAt, "state": string(p.Revocation.state()),
	}
}

// shown is as much of a secret as is kept.
func (d SecretDigest) shown(prefix string) string {
	return prefix + d.First + "…" + d.Last
}
