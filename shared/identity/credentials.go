package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
)

// Why a credential is refused.
var (
	ErrUnknown = errors.New("the credential is unknown")
	ErrRevoked = errors.New("the credential was revoked")
	ErrExpired = errors.New("the credential has expired")
)

// Credentials are all credentials of the installation, from
// weir.credentials.v1. Safe for concurrent use.
type Credentials struct {
	clock   func() time.Time
	mu      sync.RWMutex
	byKey   map[string]contract.Credential // by contract.CredentialKey; bounded by the rows of tenants
	origins map[string]int                 // of web pages: how many active keys have each; bounded by those keys
	holders map[string]contract.Holder     // by contract.HolderKey; bounded by deletions that have not finished, or were cancelled
	changed chan struct{}                  // closed when byKey changes

	awaited, compared string       // starts of processes; see AwaitCompared
	whole             func() error // nil while no credential can be missing
}

// NewCredentials returns an empty set, to be filled by Apply.
func NewCredentials(clock func() time.Time) *Credentials {
	return &Credentials{clock: clock, byKey: map[string]contract.Credential{}, origins: map[string]int{}, holders: map[string]contract.Holder{},
		changed: make(chan struct{}), whole: func() error { return nil }}
}

// AwaitCompared has Compared fail until tenants has compared the topic
// with its tables in a start of its process; "" waits for nothing. Call
// it before anything is applied.
func (c *Credentials) AwaitCompared(start string) { c.awaited = start }

// errNotCompared means that the topic may lack a revocation.
var errNotCompared = errors.New("weir.credentials.v1 is not compared with the tables of tenants yet")

// Compared returns nil once nothing that was awaited is missing.
func (c *Credentials) Compared() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.compared != c.awaited {
		return errNotCompared
	}
	return nil
}

// applyCompared takes the marker. At a start only the awaited one counts.
func (c *Credentials) applyCompared(record bus.Record) error {
	var marker contract.CredentialsCompared
	if err := json.Unmarshal(record.Value, &marker); err != nil {
		return fmt.Errorf("cannot read the marker of weir.credentials.v1: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if marker.Start == c.awaited {
		c.compared = marker.Start
	}
	return nil
}

// Apply takes one record of weir.credentials.v1; an empty value is a
// tombstone. It ignores an older state, so that records may be read again.
func (c *Credentials) Apply(key string, value []byte) error {
	if len(value) == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forget(key)
		delete(c.holders, key)
		return nil
	}
	var credential contract.Credential
	if err := json.Unmarshal(value, &credential); err != nil {
		return fmt.Errorf("cannot read the credential with key %q: %w", key, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.past(credential) {
		c.forget(key)
		return nil
	}
	if credential.Version >= c.byKey[key].Version {
		c.forget(key)
		c.byKey[key] = credential
		c.countOrigins(credential, 1)
		c.notify()
	}
	return nil
}

// forget drops a credential; the caller holds the lock.
func (c *Credentials) forget(key string) {
	c.countOrigins(c.byKey[key], -1)
	delete(c.byKey, key)
}

func (c *Credentials) countOrigins(credential contract.Credential, by int) {
	if credential.State != contract.CredentialActive {
		return
	}
	for _, origin := range credential.Origins {
		if c.origins[origin] += by; c.origins[origin] == 0 {
			delete(c.origins, origin)
		}
	}
}

// ServesOrigin reports whether web pages of an origin may use any API key.
func (c *Credentials) ServesOrigin(origin string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.origins[origin] > 0
}

// ApplyHolder takes the state of all credentials of an organization or
// project. It ignores an older one.
func (c *Credentials) ApplyHolder(key string, value []byte) error {
	var holder contract.Holder
	if err := json.Unmarshal(value, &holder); err != nil {
		return fmt.Errorf("cannot read the holder with key %q: %w", key, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder.Version >= c.holders[key].Version {
		c.holders[key] = holder
		c.notify()
	}
	return nil
}

// refused reports whether a credential or its holder is revoked. The
// caller holds the lock.
func (c *Credentials) refused(credential contract.Credential) bool {
	return credential.State != contract.CredentialActive || c.isRevoked(contract.HolderKey(credential.Organization, "")) ||
		credential.Project != "" && c.isRevoked(contract.HolderKey("", credential.Project))
}

func (c *Credentials) isRevoked(holder string) bool {
	return c.holders[holder].State == contract.CredentialRevoked
}

// past reports whether a credential is an expired session. Every
// sign-in makes one, and its end needs no reason, so they are dropped.
func (c *Credentials) past(credential contract.Credential) bool {
	return credential.Kind == contract.CredentialSession && credential.ExpiresAt != nil && !c.clock().Before(*credential.ExpiresAt)
}

// notify wakes all who wait for a credential; the caller holds the lock.
func (c *Credentials) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Lookup returns the holder of secret; else ErrUnknown, ErrRevoked or
// ErrExpired, or a 500 for one that a topic read again may have. It looks up a hash, so its duration reveals nothing
// about a guess.
func (c *Credentials) Lookup(secret string) (Principal, error) {
	key := contract.CredentialKey(secret)
	c.mu.RLock()
	credential, known := c.byKey[key]
	refused := c.refused(credential)
	c.mu.RUnlock()
	switch {
	case !known:
		return Principal{}, c.unknown()
	case refused:
		return Principal{}, ErrRevoked
	case credential.ExpiresAt != nil && !c.clock().Before(*credential.ExpiresAt):
		return Principal{}, ErrExpired
	}
	return principal(credential), nil
}

// unknown returns why a credential is not known.
func (c *Credentials) unknown() error {
	if err := c.whole(); err != nil {
		return httpapi.Starting(httpapi.Part("keys and projects", err))
	}
	return ErrUnknown
}

// Ended returns the holder of a revoked or expired API key; false for a
// valid or unknown one. It is for accounting, not for access.
func (c *Credentials) Ended(secret string) (holder Principal, ended bool) {
	c.mu.RLock()
	credential, known := c.byKey[contract.CredentialKey(secret)]
	refused := c.refused(credential)
	c.mu.RUnlock()
	if !known || credential.Kind != contract.CredentialAPIKey {
		return Principal{}, false
	}
	expired := credential.ExpiresAt != nil && !c.clock().Before(*credential.ExpiresAt)
	return principal(credential), expired || refused
}

func principal(credential contract.Credential) Principal {
	return Principal{
		Kind:            credential.Kind,
		ID:              credential.ID,
		Organization:    credential.Organization,
		Project:         credential.Project,
		Environment:     credential.Environment,
		Member:          credential.Member,
		Name:            credential.Name,
		Scopes:          credential.Scopes,
		RatePerMinute:   credential.RatePerMinute,
		Access:          credential.Access,
		Lenient:         credential.Lenient,
		Origins:         credential.Origins,
		AuthenticatedAt: orZero(credential.AuthenticatedAt),
		RenewAt:         orZero(credential.RenewAt),
	}
}

// orZero returns *at, or the zero time for nil.
func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// Follow returns a reader that keeps c up to date with weir.credentials.v1.
// from configures it, except Topic, here and below. Its Apply is Consume,
// unless another calls that.
func (c *Credentials) Follow(from state.Config, logger *slog.Logger) *state.Reader {
	from.Topic, from.Marker = contract.TopicCredentials, contract.CredentialsComparedKey
	if from.Apply == nil {
		from.Apply = c.Consume
	}
	reader := state.NewReader(from, logger)
	c.whole = reader.Whole
	return reader
}

// Consume takes a record of weir.credentials.v1. It ignores other
// types: a newer tenants may publish more. Tombstones may have none.
func (c *Credentials) Consume(record bus.Record) error {
	switch kind := record.Header(contract.HeaderType); {
	case len(record.Value) == 0, kind == contract.TypeCredentialChanged:
		return c.Apply(string(record.Key), record.Value)
	case kind == contract.TypeHolderChanged:
		return c.ApplyHolder(string(record.Key), record.Value)
	case kind == contract.TypeCredentialsCompared:
		return c.applyCompared(record)
	}
	return nil
}
