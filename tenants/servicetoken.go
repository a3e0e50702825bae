package tenants

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxScopes is how many scopes one token may have.
const maxScopes = 32

// scopeForm is the form of a scope: subject and action.
// The modules that check it define its meaning.
var scopeForm = regexp.MustCompile(`^[a-z][a-z-]{0,30}:[a-z][a-z-]{0,30}$`)

// A ServiceToken lets a service such as billing act for one
// organization, or for the Installation. Only its digest is stored.
type ServiceToken struct {
	ID           string // empty until it is issued
	Organization string // or Installation
	Name         string
	Scopes       []string // sorted, each once
	Digest       SecretDigest
	Configured   bool // set by the installation's configuration, not by a request
	IssuedAt     time.Time
	Revocation   Revocation
}

// IssueServiceToken is the command to issue a token
// for an existing organization or the Installation.
type IssueServiceToken struct {
	ID           string
	Organization string
	Name         string
	Scopes       []string
	Digest       SecretDigest
	Configured   bool
	At           time.Time
}

// ServiceTokenIssued starts a service token.
type ServiceTokenIssued struct {
	ServiceToken string       `json:"service_token"`
	Organization string       `json:"organization"`
	Name         string       `json:"name"`
	Scopes       []string     `json:"scopes"`
	Digest       SecretDigest `json:"digest"`
	Configured   bool         `json:"configured,omitempty"`
	At           time.Time    `json:"at"`
}

func (e ServiceTokenIssued) meta() eventMeta {
	return eventMeta{"tenants.v1.service_token_issued", PublishedCredential, "service_token.issued", e.At, &ServiceToken{}, kept}
}

// ServiceTokenRevoked ends a service token.
type ServiceTokenRevoked struct {
	ServiceToken string    `json:"service_token"`
	Reason       string    `json:"reason"`
	At           time.Time `json:"at"`
}

func (e ServiceTokenRevoked) meta() eventMeta {
	return eventMeta{"tenants.v1.service_token_revoked", PublishedCredential, "service_token.revoked", e.At, &ServiceToken{}, kept}
}

// Check returns Invalid with every fault of the command, or nil.
func (c IssueServiceToken) Check() error {
	faults := append(checkGiven("organization", c.Organization), checkName(c.Name)...)
	return append(faults, checkScopes(c.Scopes)...).orNil()
}

func checkScopes(scopes []string) (faults Invalid) {
	if len(scopes) == 0 || len(scopes) > maxScopes {
		faults = append(faults, Fault{"scopes", fmt.Sprintf("There are %d scopes.", len(scopes)),
			fmt.Sprintf("Send 1 to %d, such as [\"billing:read\"].", maxScopes)})
	}
	for i, scope := range scopes[:min(len(scopes), maxScopes)] {
		if !scopeForm.MatchString(scope) {
			faults = append(faults, Fault{fmt.Sprintf("scopes/%d", i), fmt.Sprintf("The scope is %q.", scope),
				"Use two lower-case words with a colon between them, such as billing:read."})
		}
	}
	return faults
}

// Issue decides on a new token. A repeated request fails with
// ErrShownOnce, another one with the same id with ErrReused.
func (s ServiceToken) Issue(cmd IssueServiceToken) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	issued := ServiceTokenIssued{
		ServiceToken: cmd.ID, Organization: cmd.Organization, Name: CleanName(cmd.Name), Scopes: sorted(cmd.Scopes),
		Digest: cmd.Digest, Configured: cmd.Configured, At: cmd.At,
	}
	switch {
	case s.ID == "":
		return []Event{issued}, nil
	case s.Name == issued.Name && slices.Equal(s.Scopes, issued.Scopes):
		return nil, ErrShownOnce
	}
	return nil, ErrReused
}

// Register decides on a configured token. It is idempotent, even
// once the token is revoked: a restart does not restore it.
func (s ServiceToken) Register(cmd IssueServiceToken) ([]Event, error) {
	if s.ID != "" && s.Digest == cmd.Digest {
		return nil, nil
	}
	cmd.Configured = true
	return s.Issue(cmd)
}

// Revoke decides to end the token. It is idempotent: the first reason stays.
func (s ServiceToken) Revoke(cmd Revoke) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	switch {
	case s.ID == "":
		return nil, ErrNotFound
	case s.State() == Revoked:
		return nil, nil
	}
	return []Event{ServiceTokenRevoked{ServiceToken: s.ID, Reason: cmd.reason(), At: cmd.At}}, nil
}

// State is whether the token works.
func (s ServiceToken) State() State {
	return s.Revocation.state()
}

// Apply applies an event.
func (s *ServiceToken) Apply(event Event) {
	switch e := event.(type) {
	case ServiceTokenIssued:
		*s = ServiceToken{
			ID: e.ServiceToken, Organization: e.Organization, Name: e.Name, Scopes: e.Scopes, Digest: e.Digest,
			Configured: e.Configured, IssuedAt: e.At,
		}
	case ServiceTokenRevoked:
		s.Revocation = Revocation{At: e.At, Reason: e.Reason}
	default:
		panic(fmt.Sprintf("BUG: a service token does not know %T", event))
	}
}

// sorted returns the scopes in order, each once.
func sorted(scopes []string) []string {
	ordered := slices.Clone(scopes)
	slices.SortFunc(ordered, strings.Compare)
	return slices.Compact(ordered)
}

func (s *ServiceToken) audited() (Target, Fields) {
	return Target{"service_token", s.ID, s.Name}, Fields{
		"name": s.Name, "scopes": s.Scopes, "token": s.Digest.shown(ServiceTokenPrefix), "configured": s.Configured,
		"state": string(s.Revocation.state()), "reason": s.Revocation.Reason,
	}
}
