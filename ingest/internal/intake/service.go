package intake

import (
	"context"
	"net/netip"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyfact"
)

// A Publisher writes an accepted request to the log: the
// brokers, or a test's memory.
type Publisher interface {
	// Publish returns what became of the request, whether it fails or not.
	Publish(ctx context.Context, accepted ingest.Acceptance) (ingest.Outcome, error)
}

// A Service accepts entries. It is safe for concurrent use.
type Service struct {
	Credentials *identity.Credentials
	Gate        *admission.Gate
	Clients     *admission.Clients
	Replays     *admission.Replays
	Publisher   Publisher
	Meter       *keyfact.Meter  // counts the uses of keys; may be nil
	Outcomes    *outcomes.Meter // counts outcomes of requests; may be nil
	Timeout     time.Duration   // how long a small request waits for the brokers
	Clock       func() time.Time
	NewBatch    func() string // makes UUIDv7s
}

// A Caller is who sends a request.
type Caller struct {
	identity.Principal
	Ended bool // the key was revoked or has expired
}

// Known reports whether the request came with a key that is or was valid.
func (c *Caller) Known() bool { return c.ID != "" }

// Authenticate returns the holder of a key. The error is the answer to an
// invalid one; the caller of an ended one is known.
func (s *Service) Authenticate(key string) (caller Caller, err error) {
	if caller.Principal, err = identity.APIKey(s.Credentials, key); err != nil {
		caller.Principal, caller.Ended = s.Credentials.Ended(key)
	}
	return caller, err
}

// AdmitClient takes a token of a network from which a request
// without a valid key comes.
func (s *Service) AdmitClient(network netip.Prefix) fairshare.Result {
	return s.Clients.Take(network, s.Clock())
}

// WaitOf returns how long a network's waste delays its next body.
func (s *Service) WaitOf(network netip.Prefix) time.Duration {
	return s.Clients.Wait(network, s.Clock())
}

// ReleaseClient puts the token of a network back: its request
// turned out to carry a valid key.
func (s *Service) ReleaseClient(network netip.Prefix) {
	s.Clients.Give(network, s.Clock())
}

// ChargeWaste charges bytes sent without effect to the caller,
// or to its network where there is none.
func (s *Service) ChargeWaste(caller Caller, network netip.Prefix, bytes int64) {
	if !caller.Known() || caller.Ended {
		s.Clients.Waste(network, s.Clock(), bytes)
		return
	}
	s.Gate.Waste(caller.Organization, bytes)
}

// CountUse counts a use of the caller's key, if it has one. err
// is how the request ended.
func (s *Service) CountUse(caller Caller, err error, from netip.Addr, userAgent string) {
	outcome := keyfact.Accepted
	switch {
	case !caller.Known():
		return
	case caller.Ended:
		outcome = keyfact.Refused
	case err != nil:
		outcome = keyfact.Rejected
	}
	s.Meter.Note(caller.Principal, outcome, from, userAgent)
}
