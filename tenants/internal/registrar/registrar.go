// Package registrar carries out what callers ask for: it finds what a command concerns, lets the domain decide, keeps
// the decision, and waits until it is in force.
package registrar

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// Prefixes of ids, so that people tell what an id is of.
const (
	organizationPrefix = "org_"
	projectPrefix      = "prj_"
	apiKeyPrefix       = "key_"
	serviceTokenPrefix = "tok_"
	memberPrefix       = "mem_"
	sessionPrefix      = "ses_"
	invitationPrefix   = "inv_"
	passkeyPrefix      = "pky_"
	failuresPrefix     = "sif_"
)

// Config is what a Registrar works with. All of it is required.
type Config struct {
	Events           *postgres.Events
	Views            *postgres.Views
	CredentialWaiter *bus.CredentialWaiter
	Clock            func() time.Time
	IDs              func() string // unique and at most 60 URL-safe characters, later ones sorting behind
	Random           io.Reader     // a cryptographic source

	Limits  tenants.Limits                // of each organization
	Ceiling func(organization string) int // its requests per minute; 0 where that is not known

	Passwords    *password.Hasher
	Challenges   *postgres.Challenges
	RelyingParty *passkey.RelyingParty // nil: passkeys can't be used here; may then not be asked for
	Provider     *oidc.Provider        // nil: there is no identity provider
}

// A Registrar registers organizations, projects, API keys, service tokens, members and their sessions. Its errors are those of tenants: Invalid,
// ErrNotFound, ErrForbidden, ErrReused, ErrShownOnce; any other is a failure of what it stands on.
type Registrar struct {
	Config
}

// New returns a registrar.
func New(config Config) *Registrar {
	return &Registrar{config}
}

// newID returns the id of what a request creates in an organization. With an idempotency key it follows from that, the
// caller, the kind and the organization: so the same request meets what it created before, for ever and without a
// table of keys.
func (r *Registrar) newID(request Request, prefix, organization string) string {
	if request.IdempotencyKey == "" {
		return prefix + r.IDs()
	}
	scope := strings.Join([]string{request.Caller.ID, prefix, organization, request.IdempotencyKey}, "\n")
	sum := sha256.Sum256([]byte(scope))
	return prefix + hex.EncodeToString(sum[:16])
}

// now is the time as the database keeps it: UTC, to the microsecond.
func (r *Registrar) now() time.Time {
	return r.Clock().UTC().Truncate(time.Microsecond)
}

// reachable returns the organization that the caller names, or ErrNotFound for one that is unknown or foreign.
func (r *Registrar) reachable(ctx context.Context, caller tenants.Caller, organization string) error {
	if !caller.Reaches(organization) || !tenants.IsID(organization) {
		return fmt.Errorf("organization %q: %w", organization, tenants.ErrNotFound)
	}
	_, err := r.Views.Organization(ctx, pg.Organization(caller.Organization), organization)
	return err
}

// streamOf names the stream of one thing; each thing that changes as a whole has its own.
func streamOf(organization, noun, id string) eventstore.Stream {
	return eventstore.Stream{Organization: organization, Name: noun + "/" + id}
}
