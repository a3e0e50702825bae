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
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type balanceQuery struct {
	At        time.Time `query:"at" description:"Balance of the period that holds this instant, by what was booked until then. 400 where that is longer ago than transfers are kept; as_of has positions for the last 8 days"`
	Wait      string    `query:"wait" enum:"true,false" description:"true: answers once all is booked that ingest had acknowledged before this request, so that you find what you have sent; 500 unavailable where that takes more than 5 seconds"`
	MinOffset string    `query:"min_offset" description:"Answers once the log is booked through these positions: partitions of weir.logs.v1 and next offsets, such as 0:17,3:5; 400 where the log ends before them, 500 unavailable where that takes more than 5 seconds"`
	Batch     string    `query:"batch" format:"uuid" description:"Answers once this batch is charged, by the Weir-Batch-Id of the answer to POST /v1/logs, or once all is booked that was acknowledged before this request: batch_charged tells which. 500 unavailable where that takes more than 5 seconds; wait, min_offset and batch together take no longer"`
}

func balanceOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/balance", Handle: a.balance, ID: "getBalance", Scopes: []string{ScopeRead},
			Summary: "What an organization may send and has sent in a period",
			Query:   balanceQuery{},
			Answer:  openapi.Answer{Type: balanceBody{}},
		},
	}
}

type balanceBody struct {
	Organization      string             `json:"organization"`
	Test              bool               `json:"test" description:"A test organization, with a test clock: nobody owes anything"`
	Tier              string             `json:"tier" enum:"indie,bootstrapper,compliance,scale"`
	RequestsPerMinute int                `json:"requests_per_minute"`
	Period            periodBody         `json:"period"`
	Granted           int64              `json:"granted" description:"Bytes that there were to use in the period: what is left, and what was used, expired or was voided"`
	Consumed          int64              `json:"consumed" description:"Bytes used of what was granted; overage is beside it"`
	Remaining         int64              `json:"remaining" description:"Bytes left, never below zero"`
	Overage           int64              `json:"overage" description:"Bytes used beyond what was granted, as the plan accepts or an adjustment has charged"`
	Overshoot         int64              `json:"overshoot" description:"Accepted beyond what the plan allows, by replicas that did not know of each other: the operator's, charged to nobody. 0 as a rule"`
	Expired           int64              `json:"expired" description:"Bytes of the period that expired unused"`
	Voided            int64              `json:"voided" description:"Bytes of grants that were taken back in the period"`
	State             string             `json:"state" enum:"active,exhausted,suspended"`
	AsOf              bookedBody         `json:"as_of"`
	LagMilliseconds   *int64             `json:"lag_ms" description:"The first record that was in the log and not booked was accepted no longer ago, in milliseconds; null: not known, or of an instant that is past"`
	VerifiedThrough   contract.Positions `json:"verified_through" nullable:"true" description:"Next offset of weir.logs.v1 by partition: what was booked before is compared with the log and the entries"`
	BatchCharged      *bool              `json:"batch_charged,omitempty" description:"Whether the batch has a charge of its own in this organization; there where batch is asked for. false: it repeats another, whose charge the balance has; or it was never accepted whole, or is older than transfers are kept"`
}

type periodBody struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// asOfBody is the time of an answer and the positions of the log that it counts.
type asOfBody struct {
	Time      time.Time          `json:"time"`
	Positions contract.Positions `json:"positions" description:"Next offset of weir.logs.v1 by partition"`
}

// bookedBody is asOfBody with how many records are not booked; null
// where unknown or of a past instant.
type bookedBody struct {
	asOfBody
	Behind *int64 `json:"behind" description:"Records that were in the log and not booked, within the last second; null: not known, or of an instant that is past"`
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
	at, err := instant(r, "at", time.Time{})
	if err != nil {
		return err
	}
	organization, err := organizationFromPath(r)
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
