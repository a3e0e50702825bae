package http

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/httpapi"
)

// replayPatience is how long a request waits for an earlier one with the same idempotency key.
const replayPatience = 5 * time.Second

func digestOf(body []byte) admission.Digest { return sha256.Sum256(body) }

// takeOnce takes in a batch under its idempotency key, or answers as the first request with that key did.
func (q *request) takeOnce(batch *ingest.Batch) error {
	key := admission.Digest(sha256.Sum256([]byte(q.who.Project + "\x00" + q.asked.idempotency)))
	timeout := time.NewTimer(replayPatience)
	defer timeout.Stop()
	for {
		attempt, first := q.Replays.Begin(key, q.digest, q.Clock())
		if first {
			return q.takeFirst(attempt, batch, hex.EncodeToString(key[:]))
		}
		if attempt.Body() != q.digest {
			return httpapi.NewProblem(http.StatusBadRequest, "idempotency_key_reused",
				"The Idempotency-Key was used with another body within 24 hours. Use a new key for a new request.")
		}
		select {
		case <-attempt.Done():
		case <-timeout.C:
			return errors.Join(overloaded(), errNoFault)
		case <-q.r.Context().Done():
			return q.r.Context().Err()
		}
		if earlier := attempt.Answer(); earlier != nil {
			q.wasted = wasteOf(batch, q.wasted)
			q.w.Header().Set("Idempotency-Replayed", "true")
			answer(q.w, batch, earlier.Bytes, q.passage.Quota)
			return nil
		}
	}
}

func (q *request) takeFirst(attempt *admission.Attempt, batch *ingest.Batch, idempotency string) error {
	defer attempt.Fail() // unless it has succeeded
	err := q.publish(batch, idempotency, hex.EncodeToString(q.digest[:]))
	if err == nil {
		attempt.Succeed(admission.Answer{Bytes: batch.Bytes})
	}
	return err
}
