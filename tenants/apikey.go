package tenants

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Environment is where the holder of an API key runs.
type Environment string

// The environments.
const (
	Prod    Environment = "prod"
	Staging Environment = "staging"
	Dev     Environment = "dev"
)

// APIKeyIssued starts an API key.
type APIKeyIssued struct {
	APIKey       string       `json:"api_key"`
	Organization string       `json:"organization"`
	Project      string       `json:"project"`
	Environment  Environment  `json:"environment"`
	Name         string       `json:"name"`
	Digest       SecretDigest `json:"digest"`
	At           time.Time    `json:"at"`
	ExpiresAt    *time.Time   `json:"expires_at,omitempty"`

	RatePerMinute int    `json:"rate_per_minute,omitempty"` // 0: no limit of its own
	Replaces      string `json:"replaces,omitempty"`        // id of the replaced key
	Access        Access `json:"access"`
	Sending

	ReadoptedAt time.Time `json:"readopted_at,omitzero"` // as for OrganizationCreated
}

func (e APIKeyIssued) meta() eventMeta {
	action, at := beginning("api_key", "issued", e.At, e.ReadoptedAt)
	return eventMeta{"tenants.v1.api_key_issued", PublishedCredential, action, at, &APIKey{}, kept}
}

// APIKeyRevoked ends an API key.
type APIKeyRevoked struct {
	APIKey string    `json:"api_key"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (e APIKeyRevoked) meta() eventMeta {
	return eventMeta{"tenants.v1.api_key_revoked", PublishedCredential, "api_key.revoked", e.At, &APIKey{}, kept}
}

func environments() []Environment {
	return []Environment{Prod, Staging, Dev}
}

// An APIKey lets a client send logs for one project
// and environment. Only its digest is stored.
type APIKey struct {
	ID           string // empty until it is issued
	Organization string
	Project      string
	Environment  Environment
	Name         string
	Digest       SecretDigest
	IssuedAt     time.Time
	ExpiresAt    time.Time // zero: never
	Revocation   Revocation

	RatePerMinute int           // requests per minute, where lower than the organization's; 0: no limit of its own
	Lifetime      time.Duration // from issue to the original end; 0: no end
	Replaces      string        // id of the replaced key; empty: none
	RotatedTo     string        // id of the key that replaces it; empty: none
	RotatedAt     time.Time
	Exposures     []Exposure // oldest first
	Access        Access
	Sending

	curtailed bool // its end was brought forward after an exposure
}

// IssueAPIKey is the command to issue a key for an existing project.
type IssueAPIKey struct {
	ID           string
	Organization string
	Project      string
	Environment  Environment
	Name         string
	Digest       SecretDigest
	ExpiresAt    time.Time // zero: never
	At           time.Time

	RatePerMinute int    // 0: no limit of its own
	Ceiling       int    // requests per minute of the organization; 0: not known
	Replaces      string // id of the replaced key
	Access        Access // empty: full
	Sending

	ReadoptedAt time.Time // as for CreateOrganization
}

// Check returns Invalid with every fault of the command, or nil.
func (c IssueAPIKey) Check() error {
	faults := checkGiven("project", c.Project)
	if c.Replaces == "" { // else it keeps the name, by whatever rule that was given
		faults = append(faults, checkName(c.Name)...)
	}
	if !slices.Contains(environments(), c.Environment) {
		faults = append(faults, Fault{"environment", fmt.Sprintf("environment is %q.", c.Environment), oneOf(environments())})
	}
	if !c.ExpiresAt.IsZero() && !c.ExpiresAt.After(c.At) {
		faults = append(faults, Fault{"expires_at", fmt.Sprintf("The key would expire at %s, which is past.", c.ExpiresAt.Format(time.RFC3339)),
			"Use a time in the future, or leave it out for a key that does not expire."})
	}
	if c.ExpiresAt.UTC().Year() > maxYear {
		faults = append(faults, Fault{"expires_at", fmt.Sprintf("expires_at is in the year %d.", c.ExpiresAt.UTC().Year()),
			fmt.Sprintf("Use a time until the year %d, or leave it out for a key that does not expire.", maxYear)})
	}
	if c.Access != "" {
		faults = append(faults, c.Access.check()...)
	}
	faults = append(faults, checkRate(c.RatePerMinute, c.Ceiling)...)
	return append(faults, c.cleaned().check(cmp.Or(c.Access, FullAccess), c.RatePerMinute)...).orNil()
}

// maxYear is the last year of RFC 3339.
const maxYear = 9999

// Issue decides on a new key. A repeated request fails with
// ErrShownOnce, another one with the same id with ErrReused.
func (k APIKey) Issue(cmd IssueAPIKey) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	issued := APIKeyIssued{
		APIKey: cmd.ID, Organization: cmd.Organization, Project: cmd.Project, Environment: cmd.Environment,
		Name: CleanName(cmd.Name), Digest: cmd.Digest, At: cmd.At, ExpiresAt: optional(cmd.ExpiresAt),
		RatePerMinute: cmd.RatePerMinute, Replaces: cmd.Replaces, Access: cmp.Or(cmd.Access, FullAccess),
		Sending: cmd.cleaned(), ReadoptedAt: cmd.ReadoptedAt,
	}
	switch {
	case k.ID == "":
		return []Event{issued}, nil
	case k.matches(issued):
		return nil, ErrShownOnce
	}
	return nil, ErrReused
}

// matches reports whether the key is what the same request would get.
func (k APIKey) matches(issued APIKeyIssued) bool {
	return k.Project == issued.Project && k.Environment == issued.Environment && k.Name == issued.Name && k.Access == issued.Access &&
		k.equal(issued.Sending) && k.Replaces == issued.Replaces && (k.Replaces != "" || k.ExpiresAt.Equal(orZero(issued.ExpiresAt)))
}

// Revoke decides to end the key. It is idempotent: the first reason stays.
func (k APIKey) Revoke(cmd Revoke) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	switch {
	case k.ID == "":
		return nil, ErrNotFound
	case k.Revocation.state() == Revoked:
		return nil, nil
	}
	return []Event{APIKeyRevoked{APIKey: k.ID, Reason: cmd.reason(), At: cmd.At}}, nil
}

// State is the key's state at now.
func (k APIKey) State(now time.Time) State {
	if state := k.Revocation.state(); state != Active {
		return state
	}
	if !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) {
		return Expired
	}
	return Active
}

// Apply applies an event.
func (k *APIKey) Apply(event Event) {
	switch e := event.(type) {
	case APIKeyIssued:
		*k = APIKey{
			ID: e.APIKey, Organization: e.Organization, Project: e.Project, Environment: e.Environment,
			Name: e.Name, Digest: e.Digest, IssuedAt: e.At, ExpiresAt: orZero(e.ExpiresAt),
			RatePerMinute: e.RatePerMinute, Replaces: e.Replaces, Lifetime: lifetime(e), Access: e.Access, Sending: e.Sending,
		}
	case APIKeyRevoked:
		k.Revocation = Revocation{At: e.At, Reason: e.Reason}
	case APIKeyRotated:
		k.RotatedTo, k.RotatedAt, k.ExpiresAt = e.To, e.At, e.ExpiresAt
	case APIKeyChanged:
		k.Name, k.RatePerMinute, k.Access, k.Sending = e.Name, e.RatePerMinute, e.Access, e.Sending
	case APIKeyExposed:
		k.Exposures = append(k.Exposures, Exposure{Kind: e.Kind, Where: e.Where, Source: e.Source, Address: e.Address, At: e.At})
	case APIKeyCurtailed:
		k.ExpiresAt, k.curtailed = e.ExpiresAt, true
	default:
		panic(fmt.Sprintf("BUG: an API key does not know %T", event))
	}
}

// lifetime is how long a key was issued for; 0: without end.
func lifetime(issued APIKeyIssued) time.Duration {
	if issued.ExpiresAt == nil {
		return 0
	}
	return issued.ExpiresAt.Sub(issued.At)
}

// optional is nil for the zero time.
func optional(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// orZero is the inverse of optional.
func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

func (k *APIKey) audited() (Target, Fields) {
	return Target{"api_key", k.ID, k.Name}, Fields{
		"name": k.Name, "project": k.Project, "environment": string(k.Environment), "key": k.Digest.shown(APIKeyPrefix),
		"expires_at": k.ExpiresAt, "state": string(k.Revocation.state()), "reason": k.Revocation.Reason,
		"rate_per_minute": k.RatePerMinute, "replaces": k.Replaces, "rotated_to": k.RotatedTo, "exposed": k.exposed(),
		"access": string(k.Access), "lenient": k.Lenient, "origins": k.Origins,
	}
}

// exposed is a short text about each exposure.
func (k *APIKey) exposed() (texts []string) {
	for _, e := range k.Exposures {
		texts = append(texts, strings.TrimSpace(string(e.Kind)+" "+e.Where))
	}
	return texts
}

// An Access is what an API key may read. Every key sends logs, for its own project.
type Access string

// The accesses.
const (
	FullAccess    Access = "full"    // reads the logs and errors of the whole organization
	ProjectAccess Access = "project" // reads those of its own project alone
	WriteAccess   Access = "write"   // reads nothing
)

// Accesses lists all of them.
func Accesses() []Access { return []Access{FullAccess, ProjectAccess, WriteAccess} }

// check returns the fault of an unknown access.
func (a Access) check() Invalid {
	if slices.Contains(Accesses(), a) {
		return nil
	}
	return Invalid{{"access", fmt.Sprintf("access is %q.", string(a)), oneOf(Accesses())}}
}

// KeySettings are what can be changed of a key; nil: unchanged.
type KeySettings struct {
	Name          *string
	RatePerMinute *int // 0: no limit of its own
	Access        *Access
	Lenient       *bool
	Origins       *[]string // empty: programs use the key
}

// ChangeAPIKey is the command to change a key's settings.
type ChangeAPIKey struct {
	KeySettings

	Ceiling int // requests per minute of the organization; 0: not known
	At      time.Time
}

// APIKeyChanged has the settings of an API key after a change of any.
type APIKeyChanged struct {
	APIKey        string    `json:"api_key"`
	Name          string    `json:"name"`
	RatePerMinute int       `json:"rate_per_minute,omitempty"` // 0: no limit of its own
	Access        Access    `json:"access"`
	At            time.Time `json:"at"`
	Sending
}

func (e APIKeyChanged) meta() eventMeta {
	return eventMeta{"tenants.v1.api_key_changed", PublishedCredential, "api_key.changed", e.At, &APIKey{}, byNext}
}

// Check returns Invalid with every fault of the command, or nil.
func (c ChangeAPIKey) Check() error {
	var faults Invalid
	if c.Name != nil {
		faults = checkName(*c.Name)
	}
	if c.RatePerMinute != nil {
		faults = append(faults, checkRate(*c.RatePerMinute, c.Ceiling)...)
	}
	if c.Access != nil {
		faults = append(faults, c.Access.check()...)
	}
	return faults.orNil()
}

// Change decides on other settings. There is no event if all stay the
// same. An ended key can't be changed.
func (k APIKey) Change(cmd ChangeAPIKey) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if err := k.usable(cmd.At); err != nil {
		return nil, err
	}
	after := APIKeyChanged{APIKey: k.ID, Name: k.Name, RatePerMinute: k.RatePerMinute, Access: k.Access, Sending: k.Sending, At: cmd.At}
	if cmd.Name != nil {
		after.Name = CleanName(*cmd.Name)
	}
	if cmd.RatePerMinute != nil {
		after.RatePerMinute = *cmd.RatePerMinute
	}
	if cmd.Access != nil {
		after.Access = *cmd.Access
	}
	if cmd.Lenient != nil {
		after.Lenient = *cmd.Lenient
	}
	if cmd.Origins != nil {
		after.Origins = *cmd.Origins
	}
	after.Sending = after.cleaned()
	if err := after.check(after.Access, after.RatePerMinute).orNil(); err != nil {
		return nil, err
	}
	if after.Name == k.Name && after.RatePerMinute == k.RatePerMinute && after.Access == k.Access && after.equal(k.Sending) {
		return nil, nil
	}
	return []Event{after}, nil
}

// MaxOverlap is how long a key may work beside the one that replaces it.
const MaxOverlap = 7 * 24 * time.Hour

// Why a key can't be rotated or changed.
var (
	// ErrKeyRevoked and ErrKeyExpired mean that the key has ended.
	ErrKeyRevoked = errors.New("the API key is revoked")
	ErrKeyExpired = errors.New("the API key has expired")
	// ErrKeyRotated means that the key was
	// replaced: its successor is the one to rotate.
	ErrKeyRotated = errors.New("the API key was rotated already")
)

// RotateAPIKey is the command to replace a key, which
// still works for a while so that its holders can switch.
type RotateAPIKey struct {
	To      string        // id of the new key
	Digest  SecretDigest  // of the new key
	Overlap time.Duration // 0 to MaxOverlap: how long the old key still works
	At      time.Time
}

// APIKeyRotated records that another key
// replaces an API key, which ends at ExpiresAt.
type APIKeyRotated struct {
	APIKey    string    `json:"api_key"`
	To        string    `json:"to"` // id of the other key
	ExpiresAt time.Time `json:"expires_at"`
	At        time.Time `json:"at"`
}

func (e APIKeyRotated) meta() eventMeta {
	return eventMeta{"tenants.v1.api_key_rotated", PublishedCredential, "api_key.rotated", e.At, &APIKey{}, kept}
}

// Check returns Invalid with every fault of the command, or nil.
func (c RotateAPIKey) Check() error {
	if c.Overlap < 0 || c.Overlap > MaxOverlap {
		return Invalid{{"overlap_seconds", fmt.Sprintf("The old key would still work for %d seconds.", int64(c.Overlap/time.Second)),
			fmt.Sprintf("Use 0 to %d: the key ends at once, or up to 7 days later.", int64(MaxOverlap/time.Second))}}
	}
	return nil
}

// Rotate decides that the key ends after the overlap, or at its own end
// if that is earlier. A revoked, expired or rotated key can't be rotated.
func (k APIKey) Rotate(cmd RotateAPIKey) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if err := k.usable(cmd.At); err != nil {
		return nil, err
	}
	if k.RotatedTo != "" {
		return nil, ErrKeyRotated
	}
	return []Event{APIKeyRotated{APIKey: k.ID, To: cmd.To, ExpiresAt: earlierEnd(k.ExpiresAt, cmd.At.Add(cmd.Overlap)), At: cmd.At}}, nil
}

// Successor is the command for the key that replaces this one: same
// project, environment, name and settings, and the same lifetime.
func (k APIKey) Successor(cmd RotateAPIKey) IssueAPIKey {
	successor := IssueAPIKey{
		ID: cmd.To, Organization: k.Organization, Project: k.Project, Environment: k.Environment, Name: k.Name,
		RatePerMinute: k.RatePerMinute, Access: k.Access, Sending: k.Sending, Digest: cmd.Digest, Replaces: k.ID, At: cmd.At,
	}
	if k.Lifetime > 0 {
		successor.ExpiresAt = cmd.At.Add(k.Lifetime)
	}
	return successor
}

// usable is nil if the key works at now.
func (k APIKey) usable(now time.Time) error {
	switch {
	case k.ID == "":
		return ErrNotFound
	case k.State(now) == Revoked:
		return ErrKeyRevoked
	case k.State(now) == Expired:
		return ErrKeyExpired
	}
	return nil
}

// earlierEnd is the earlier of an end, zero for never, and another time.
func earlierEnd(end, other time.Time) time.Time {
	if !end.IsZero() && end.Before(other) {
		return end
	}
	return other
}
