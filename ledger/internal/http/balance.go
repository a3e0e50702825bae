package http

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
)

type balanceBody struct {
	Organization      string             `json:"organization"`
	Test              bool               `json:"test"`
	Tier              string             `json:"tier"`
	RequestsPerMinute int                `json:"requests_per_minute"`
	Period            periodBody         `json:"period"`
	Granted           int64              `json:"granted"`
	Consumed          int64              `json:"consumed"`
	Remaining         int64              `json:"remaining"`
	Overage           int64              `json:"overage"`   // used beyond what was granted
	Overshoot         int64              `json:"overshoot"` // accepted beyond what the plan allows: nobody owes it
	Expired           int64              `json:"expired"`
	Voided            int64              `json:"voided"`
	State             string             `json:"state"`
	AsOf              bookedBody         `json:"as_of"`
	LagMilliseconds   *int64             `json:"lag_ms"` // null where unknown or of a past instant, as below
	VerifiedThrough   contract.Positions `json:"verified_through"`
	BatchCharged      *bool              `json:"batch_charged,omitempty"` // only where the client waits for one
}

type periodBody struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// asOfBody is the time of an answer and the positions of the log that it counts.
type asOfBody struct {
	Time      time.Time          `json:"time"`
	Positions contract.Positions `json:"positions"` // next offset of weir.logs.v1 by partition
}

// bookedBody is asOfBody with how many records are not booked; null
// where unknown or of a past instant.
type bookedBody struct {
	asOfBody
	Behind *int64 `json:"behind"`
}

func newBalanceBody(b balances.Balance) balanceBody {
	body := balanceBody{
		Organization: b.Organization.ID, Test: b.Organization.IsTest(), Tier: string(b.Plan.Tier), RequestsPerMinute: b.Terms.RequestsPerMinute,
		Period:  periodBody{b.Book.Period.Start, b.Book.Period.End},
		Granted: b.Book.Granted(), Consumed: b.Book.Balances[ledger.Consumed], Remaining: b.Book.Remaining(),
		Overage: b.Book.Balances[ledger.Overage], Overshoot: b.Book.Balances[ledger.Overshoot], Expired: b.Book.Balances[ledger.Expired],
		Voided: b.Book.Balances[ledger.Voided], State: b.State(), AsOf: bookedBody{asOfBody: asOfBody{b.At, b.Applied}},
	}
	if b.Booking == nil {
		return body
	}
	body.VerifiedThrough = b.Booking.Verified
	if b.Booking.Known {
		lag := b.Booking.Lag.Milliseconds()
		body.AsOf.Behind, body.LagMilliseconds = &b.Booking.Behind, &lag
	}
	return body
}

// balance answers with the balance of now or of the instant at.
func (a *API) balance(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil, "at", "wait", "min_offset", "batch"); err != nil {
		return err
	}
	at, err := instant(r, "at", time.Time{})
	if err != nil {
		return err
	}
	organization, err := reached(r)
	if err != nil {
		return err
	}
	charged, err := a.await(r, organization)
	if err != nil {
		return err
	}
	balance, err := a.Balances.Balance(r.Context(), organization, at)
	if err != nil {
		return answer(err, organization)
	}
	body := newBalanceBody(balance)
	body.BatchCharged = charged
	httpapi.WriteJSON(w, http.StatusOK, body)
	return nil
}

// await waits for what the client requested, and returns whether its
// batch is charged; nil: it named none.
func (a *API) await(r *http.Request, organization string) (charged *bool, err error) {
	query := r.URL.Query()
	through, err := positionsOf(query.Get("min_offset"))
	if err != nil {
		return nil, err
	}
	batch, err := batchOf(query.Get("batch"))
	if err != nil {
		return nil, err
	}
	if wait := query.Get("wait"); wait != "" && wait != "true" && wait != "false" {
		return nil, httpapi.Invalid("?wait", httpapi.CodeInvalidRequest, "wait is neither true nor false.", "Use one of them, or leave it out.")
	}
	charged, err = a.Balances.Waiter.Await(r.Context(), organization, balances.Awaited{All: query.Get("wait") == "true", Through: through, Batch: batch})
	if beyond, is := errors.AsType[balances.BeyondLog](err); is {
		return nil, httpapi.Invalid("?min_offset", httpapi.CodeInvalidRequest, beyond.Error(), "Use next offsets of records that the log has.")
	}
	if errors.Is(err, balances.ErrNotBooked) {
		return nil, httpapi.Unavailable("What you wait for is not booked yet. Ask again.", time.Second)
	}
	return charged, answer(err, organization)
}

// idLength is the length of a UUID's usual form; uuid.Parse accepts others.
const idLength = 36

// batchOf parses the id of a batch; uuid.Nil for none.
func batchOf(text string) (batch uuid.UUID, err error) {
	if text == "" {
		return uuid.Nil, nil
	}
	if batch, err = uuid.Parse(text); err != nil || len(text) != idLength || batch == uuid.Nil {
		return uuid.Nil, httpapi.Invalid("?batch", httpapi.CodeInvalidRequest, "batch is no id of a batch.",
			"Use the Weir-Batch-Id of an answer to POST /v1/logs.")
	}
	return batch, nil
}

// positionsOf parses positions such as 0:17,3:5.
func positionsOf(text string) (contract.Positions, error) {
	positions := contract.Positions{}
	for position := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		number, next, _ := strings.Cut(position, ":")
		partition, errPartition := strconv.ParseUint(number, 10, 31)
		offset, errOffset := strconv.ParseInt(next, 10, 64)
		if errPartition != nil || errOffset != nil || offset < 0 {
			return nil, httpapi.Invalid("?min_offset", httpapi.CodeInvalidRequest, "min_offset is no list of positions.",
				"Use partitions and next offsets as in as_of, such as 0:17,3:5.")
		}
		positions[int(partition)] = offset //nolint:gosec // 31 bits
	}
	return positions, nil
}
