package identity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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

// A Directory holds the projects of each organization, and the names of
// organizations, projects and keys, from weir.tenants.v1. Safe for concurrent use.
type Directory struct {
	mu             sync.RWMutex
	byProject      map[string]contract.ProjectCreated // bounded by the existing projects
	byOrganization map[string][]string                // ids of projects, in the order of their facts; bounded by the existing ones
	hidden         map[string]map[string]bool         // by organization, ids of projects, and "" for all; bounded by unfinished deletions
	names          map[string]string                  // by organization; bounded by the existing ones
	keys           map[string][]Key                   // by organization, the oldest first; bounded by maxKeys each
}

// A Key is an API key as people know it.
type Key struct {
	ID, Name, Project, Environment string
	Revoked                        bool
}

// maxKeys is how many keys of an organization have names here: more than
// it may have at once. Older ones show their ids.
const maxKeys = 2000

// NewDirectory returns an empty directory, to be filled by Apply.
func NewDirectory() *Directory {
	return &Directory{byProject: map[string]contract.ProjectCreated{}, byOrganization: map[string][]string{}, hidden: map[string]map[string]bool{},
		names: map[string]string{}, keys: map[string][]Key{}}
}

// Apply takes one record of weir.tenants.v1; it ignores unknown facts.
// Records may be read again.
func (d *Directory) Apply(eventType string, value []byte) error {
	switch eventType {
	case contract.TypeOrganizationCreated:
		return apply(value, eventType, func(fact contract.OrganizationCreated) { d.call(fact.Organization, fact.Name) })
	case contract.TypeOrganizationRenamed:
		return apply(value, eventType, func(fact contract.OrganizationRenamed) { d.call(fact.Organization, fact.Name) })
	case contract.TypeAPIKeyIssued:
		return apply(value, eventType, d.keyIssued)
	case contract.TypeAPIKeyChanged:
		return apply(value, eventType, d.keyChanged)
	case contract.TypeAPIKeyRevoked:
		return apply(value, eventType, d.keyRevoked)
	case contract.TypeProjectCreated:
		return apply(value, eventType, d.created)
	case contract.TypeProjectRenamed:
		return apply(value, eventType, d.renamed)
	case contract.TypeDeletionRequested:
		return apply(value, eventType, d.deletionRequested)
	case contract.TypeDeletionCancelled:
		return apply(value, eventType, d.deletionCancelled)
	case contract.TypeDeletionBegun:
		return apply(value, eventType, d.deletionBegun)
	case contract.TypeDeletionFinished:
		return apply(value, eventType, d.deletionFinished)
	}
	return nil
}

func apply[F any](value []byte, eventType string, take func(fact F)) error {
	var fact F
	if err := json.Unmarshal(value, &fact); err != nil {
		return fmt.Errorf("cannot read a fact of type %q: %w", eventType, err)
	}
	take(fact)
	return nil
}

func (d *Directory) call(organization, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[organization] = name
}

func (d *Directory) keyIssued(fact contract.APIKeyIssued) {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.keys[fact.Organization]
	if d.keyAt(fact.Organization, fact.APIKey) >= 0 {
		return
	}
	keys = append(keys, Key{ID: fact.APIKey, Name: fact.Name, Project: fact.Project, Environment: fact.Environment})
	d.keys[fact.Organization] = keys[max(0, len(keys)-maxKeys):]
}

func (d *Directory) keyChanged(fact contract.APIKeyChanged) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := d.keyAt(fact.Organization, fact.APIKey); i >= 0 {
		d.keys[fact.Organization][i].Name = fact.Name
	}
}

func (d *Directory) keyRevoked(fact contract.APIKeyRevoked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := d.keyAt(fact.Organization, fact.APIKey); i >= 0 {
		d.keys[fact.Organization][i].Revoked = true
	}
}

// keyAt returns the place of a key among those of its organization, or
// -1. The caller holds the lock.
func (d *Directory) keyAt(organization, id string) int {
	return slices.IndexFunc(d.keys[organization], func(key Key) bool { return key.ID == id })
}

func (d *Directory) created(fact contract.ProjectCreated) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.byProject[fact.Project]; !known {
		d.byOrganization[fact.Organization] = append(d.byOrganization[fact.Organization], fact.Project)
	}
	d.byProject[fact.Project] = fact
}

func (d *Directory) renamed(fact contract.ProjectRenamed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if project, known := d.byProject[fact.Project]; known {
		project.Name = fact.Name
		d.byProject[fact.Project] = project
	}
}

func (d *Directory) deletionRequested(fact contract.DeletionRequested) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hide(fact.Organization, fact.Project)
}

func (d *Directory) deletionCancelled(fact contract.DeletionCancelled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.show(fact.Organization, fact.Project)
}

// deletionBegun drops what was deleted, but keeps it hidden until it is erased.
func (d *Directory) deletionBegun(fact contract.DeletionBegun) {
	d.mu.Lock()
	defer d.mu.Unlock()
	gone := []string{fact.Project}
	if fact.Project == "" {
		gone = d.byOrganization[fact.Organization]
		delete(d.byOrganization, fact.Organization)
		delete(d.names, fact.Organization)
		delete(d.keys, fact.Organization)
	} else {
		d.keys[fact.Organization] = slices.DeleteFunc(d.keys[fact.Organization], func(key Key) bool { return key.Project == fact.Project })
		d.byOrganization[fact.Organization] = slices.DeleteFunc(d.byOrganization[fact.Organization], func(id string) bool { return id == fact.Project })
	}
	for _, id := range gone {
		delete(d.byProject, id)
	}
	d.hide(fact.Organization, fact.Project)
}

// deletionFinished forgets what is erased everywhere.
func (d *Directory) deletionFinished(fact contract.DeletionFinished) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if fact.Project == "" {
		delete(d.hidden, fact.Organization) // with its projects
		return
	}
	d.show(fact.Organization, fact.Project)
}

// hide hides a project, or with "" an organization. The caller holds the lock.
func (d *Directory) hide(organization, project string) {
	if d.hidden[organization] == nil {
		d.hidden[organization] = map[string]bool{}
	}
	d.hidden[organization][project] = true
}

// show undoes hide.
func (d *Directory) show(organization, project string) {
	if delete(d.hidden[organization], project); len(d.hidden[organization]) == 0 {
		delete(d.hidden, organization)
	}
}

func (d *Directory) isHidden(organization, project string) bool {
	return d.hidden[organization][project] || d.hidden[organization][""]
}

// Hides reports whether a project must not be shown: it is deleted, or
// to be deleted.
func (d *Directory) Hides(organization, project string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.hidden[organization][project]
}

// Hidden returns an organization's hidden projects, as the caller's own map.
func (d *Directory) Hidden(organization string) map[string]bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return maps.Clone(d.hidden[organization])
}

// Organization returns a project's organization.
func (d *Directory) Organization(project string) (organization string, known bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	fact, known := d.byProject[project]
	if d.isHidden(fact.Organization, project) {
		return "", false
	}
	return fact.Organization, known
}

// Owns reports whether a project belongs to the organization.
func (d *Directory) Owns(organization, project string) bool {
	owner, known := d.Organization(project)
	return known && owner == organization
}

// Name returns the name of a project, or its id.
func (d *Directory) Name(project string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	fact := d.byProject[project]
	if d.isHidden(fact.Organization, project) {
		return project
	}
	return cmp.Or(fact.Name, project)
}

// OrganizationName returns the name of an organization, or its id.
func (d *Directory) OrganizationName(organization string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.isHidden(organization, "") {
		return organization
	}
	return cmp.Or(d.names[organization], organization)
}

// Key returns a key of an organization; false for what is foreign,
// unknown or hidden.
func (d *Directory) Key(organization, id string) (Key, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	i := d.keyAt(organization, id)
	if i < 0 || d.isHidden(organization, d.keys[organization][i].Project) {
		return Key{}, false
	}
	return d.keys[organization][i], true
}

// Keys returns the keys of an organization that are not revoked, sorted by name.
func (d *Directory) Keys(organization string) []Key {
	d.mu.RLock()
	defer d.mu.RUnlock()
	keys := slices.DeleteFunc(slices.Clone(d.keys[organization]), func(key Key) bool { return key.Revoked || d.isHidden(organization, key.Project) })
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return keys
}

// Projects returns the projects of an organization sorted by name.
func (d *Directory) Projects(organization string) []contract.ProjectCreated {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var projects []contract.ProjectCreated
	for _, id := range d.byOrganization[organization] {
		if d.isHidden(organization, id) {
			continue
		}
		projects = append(projects, d.byProject[id])
	}
	slices.SortFunc(projects, func(a, b contract.ProjectCreated) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Project, b.Project))
	})
	return projects
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

// Follow returns a reader that keeps d up to date with weir.tenants.v1.
func (d *Directory) Follow(from state.Config, logger *slog.Logger) *state.Reader {
	from.Topic, from.Apply = contract.TopicTenants, func(record bus.Record) error {
		if len(record.Value) == 0 { // a tombstone's project was forgotten when the deletion began
			return nil
		}
		return d.Apply(record.Header(contract.HeaderType), record.Value)
	}
	return state.NewReader(from, logger)
}
