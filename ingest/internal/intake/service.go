package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/ingest/internal/rules"
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
	Rules       *rules.Book     // of projects; nil: there are none
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

// ChargeWaste charges bytes sent without effect to the caller, or to its
// network where there is none, or anybody may have its key.
func (s *Service) ChargeWaste(caller Caller, network netip.Prefix, bytes int64) {
	if !caller.Known() || caller.Ended || caller.FromPage() {
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

// maxPartBytes is how many bytes of lines go into one record.
const maxPartBytes = 900 << 10

// publishPace is how many bytes give a request another second to be
// published, as large ones take turns.
const publishPace = 4 << 20

// replayTimeout is how long a request waits for an earlier one
// with the same idempotency key.
const replayTimeout = 5 * time.Second

// Errors of a batch besides a Refusal.
var (
	ErrKeyReused    = errors.New("the idempotency key was used with another body")
	ErrReplayOpen   = errors.New("the first request with the idempotency key has not ended")
	ErrNotPublished = errors.New("the log can't be written")
)

// A Refusal is a request that the quota refuses.
type Refusal struct {
	Verdict ingest.Verdict
	Quota   ingest.QuotaStatus
	Budget  *ingest.BudgetStatus // the refusing budget; nil: none
	At      time.Time
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("the quota does not cover the request (%d)", r.Verdict)
}

// A Submission is a batch on its way into the log.
type Submission struct {
	Caller      Caller
	Batch       *ingest.Batch
	Idempotency string           // the client's key; empty: none
	Digest      admission.Digest // of the body, where there is a key
	Traceparent string           // left out where it is malformed
	Ruled       time.Duration    // out: how long rules took, whatever came of it
}

// A Receipt is the cost of a batch.
type Receipt struct {
	Batch    string // its id, by which the ledger knows it
	Bytes    int64
	Quota    ingest.QuotaStatus // zero where the batch is a replay
	Replayed bool               // accepted by an earlier request with the key
	Ruling   ingest.Ruling      // what rules did to it
}

// Admit takes the request's tokens and checks whether any quota is left.
func (s *Service) Admit(who identity.Principal) admission.Admission { return s.Gate.Enter(who) }

// Accept accepts the valid entries of a batch, once per idempotency
// key. It returns once the brokers have acknowledged them all, or
// those of an earlier request with the key.
func (s *Service) Accept(ctx context.Context, sent *Submission) (Receipt, error) {
	if sent.Idempotency == "" {
		return s.publish(ctx, sent, "")
	}
	key := admission.Digest(sha256.Sum256([]byte(sent.Caller.Project + "\x00" + sent.Idempotency)))
	timeout := time.NewTimer(replayTimeout)
	defer timeout.Stop()
	for {
		attempt, first := s.Replays.Begin(sent.Caller.Organization, key, sent.Digest, s.Clock())
		if first {
			return s.acceptFirst(ctx, attempt, sent, hex.EncodeToString(key[:]))
		}
		if attempt.Body() != sent.Digest {
			return Receipt{}, ErrKeyReused
		}
		select {
		case <-attempt.Done():
		case <-timeout.C:
			return Receipt{}, ErrReplayOpen
		case <-ctx.Done():
			return Receipt{}, ctx.Err()
		}
		if earlier := attempt.Answer(); earlier != nil {
			return Receipt{Batch: earlier.Batch, Bytes: earlier.Bytes, Replayed: true}, nil
		}
	}
}

func (s *Service) acceptFirst(ctx context.Context, attempt *admission.Attempt, sent *Submission, key string) (Receipt, error) {
	defer attempt.Fail() // unless it has succeeded
	receipt, err := s.publish(ctx, sent, key)
	if err == nil {
		attempt.Succeed(admission.Answer{Batch: receipt.Batch, Bytes: receipt.Bytes})
	}
	return receipt, err
}

// publish applies the rules of the project, reserves quota, publishes, and
// settles the reservation by what became of the request.
func (s *Service) publish(ctx context.Context, sent *Submission, key string) (Receipt, error) {
	ruling, took, err := s.Rules.Apply(sent.Caller.Project, sent.Caller.Environment, sent.Batch)
	sent.Ruled = took
	if err != nil {
		return Receipt{}, err
	}
	now, bytes := s.Clock(), sent.Batch.Bytes
	reservation, err := s.reserve(sent.Caller.Principal, now, bytes, key != "")
	if err != nil {
		return Receipt{}, err
	}
	// A request that is half written must not depend on its client's connection.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), PublishTimeout(s.Timeout, bytes))
	defer cancel()
	accepted := s.acceptance(sent, now, key)
	accepted.RetentionDays = reservation.RetentionDays()
	var outcome ingest.Outcome // nothing left: it has no effect
	if len(accepted.Parts) > 0 {
		outcome, err = s.Publisher.Publish(ctx, accepted)
	}
	quota := reservation.Settle(outcome)
	if err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", ErrNotPublished, err)
	}
	return Receipt{Batch: accepted.Batch, Bytes: bytes, Quota: quota, Ruling: ruling}, nil
}

// PublishTimeout returns how long publishing so many bytes may take,
// where a small request has timeout.
func PublishTimeout(timeout time.Duration, bytes int64) time.Duration {
	return timeout + time.Duration(bytes/publishPace)*time.Second
}

// reserve holds quota for a request. One with an idempotency key
// may repeat what another replica, or an earlier run, has
// charged: its refusal exhausts nothing.
func (s *Service) reserve(who identity.Principal, now time.Time, bytes int64, repeatable bool) (admission.Reservation, error) {
	reserve := s.Gate.Reserve
	if repeatable {
		reserve = s.Gate.Try
	}
	reservation, reserved := reserve(who, now, bytes)
	if reserved.Verdict != ingest.Admitted {
		return reservation, &Refusal{Verdict: reserved.Verdict, Quota: reserved.Quota, Budget: reserved.Budget, At: now}
	}
	return reservation, nil
}

func (s *Service) acceptance(sent *Submission, now time.Time, key string) ingest.Acceptance {
	who := &sent.Caller
	accepted := ingest.Acceptance{
		Batch: s.NewBatch(), Organization: who.Organization, Project: who.Project, Environment: who.Environment, Key: who.ID, At: now,
		Idempotency: key, Bytes: sent.Batch.Bytes, Parts: sent.Batch.Parts(nil, maxPartBytes),
	}
	if key != "" {
		accepted.Digest = hex.EncodeToString(sent.Digest[:])
	}
	if len(accepted.Parts) == 0 && (key != "" || accepted.Bytes > 0) { // the key is used, or the charge is due
		accepted.Parts = []ingest.Part{{Bytes: accepted.Bytes}}
	}
	if ingest.WellFormedTraceparent(sent.Traceparent) {
		accepted.Traceparent = sent.Traceparent
	}
	return accepted
}
