package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/identity"
)

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
}

// A Receipt is the cost of a batch.
type Receipt struct {
	Batch    string // its id, by which the ledger knows it
	Bytes    int64
	Quota    ingest.QuotaStatus // zero where the batch is a replay
	Replayed bool               // accepted by an earlier request with the key
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

// publish reserves quota, publishes, and settles the reservation
// by what became of the request.
func (s *Service) publish(ctx context.Context, sent *Submission, key string) (Receipt, error) {
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
	outcome, err := s.Publisher.Publish(ctx, accepted)
	quota := reservation.Settle(outcome)
	if err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", ErrNotPublished, err)
	}
	return Receipt{Batch: accepted.Batch, Bytes: bytes, Quota: quota}, nil
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
	if ingest.WellFormedTraceparent(sent.Traceparent) {
		accepted.Traceparent = sent.Traceparent
	}
	return accepted
}
