// Package registrar carries out what callers ask for: it finds what a command concerns, lets the domain decide, keeps
// the decision, and waits until it is in force.
package registrar

import (
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Prefixes of ids, so that people tell what an id is of.
const (
	sessionPrefix  = "ses_"
	passkeyPrefix  = "pky_"
	failuresPrefix = "sif_"
)

// Config is what a Registrar works with. All of it is required.
type Config struct {
	*unitofwork.Writer
	Views *postgres.Views

	Passwords    *password.Hasher
	Challenges   *challenge.Service
	RelyingParty *passkey.RelyingParty // nil: passkeys can't be used here; may then not be asked for
	Provider     *oidc.Provider        // nil: there is no identity provider
}

// A Request is who asks, and from where.
type Request = unitofwork.Request

// A Registrar lets members in, and keeps what lets them in. Its errors are those of tenants: Invalid,
// ErrNotFound, ErrForbidden, ErrReused, ErrShownOnce; any other is a failure of what it stands on.
type Registrar struct {
	Config
}

// New returns a registrar.
func New(config Config) *Registrar {
	return &Registrar{config}
}

func (r *Registrar) now() time.Time { return r.Now() }

// streamOf names the stream of one thing; each thing that changes as a whole has its own.
func streamOf(organization, noun, id string) eventstore.Stream {
	return unitofwork.Stream(organization, noun, id)
}
