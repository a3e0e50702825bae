package http

import (
	"errors"
	"net/http"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

// levelWaste is the level of a refusal for the organization's wasted bytes.
const levelWaste = "wasted_bytes"

// outcomeFacts are collected for the count of a request's outcome.
type outcomeFacts struct {
	refused                 intake.Refusal // zero: not refused
	keyInBody               bool
	received                int64 // bytes of the body
	entries, charged        int64 // as far as they were read: charged are the bytes of the valid ones
	rejected, rejectedBytes int64 // of a request of which other entries were accepted
}

// countOutcome counts the outcome of a request with a known key.
func (q *request) countOutcome(err error) {
	if !q.caller.Known() {
		return
	}
	ended := outcomes.Request{Requests: 1, Entries: q.entries, Bytes: q.bytes(), KeyInBody: q.keyInBody}
	if ended.Outcome, ended.Reason = q.outcome(err); err != nil {
		q.in.Service.Outcomes.Note(q.caller.Principal, ended)
		return
	}
	ended.Bytes = q.charged
	q.in.Service.Outcomes.Note(q.caller.Principal, ended)
	if q.rejected > 0 {
		q.in.Service.Outcomes.Note(q.caller.Principal, outcomes.Request{
			Outcome: contract.OutcomeRejected, Reason: string(ingest.CodeInvalidEntries), Entries: q.rejected, Bytes: q.rejectedBytes,
		})
	}
}

// outcome returns a request's outcome and its reason.
func (q *request) outcome(err error) (outcome, reason string) {
	if err == nil {
		return contract.OutcomeAccepted, ""
	}
	status, code := http.StatusInternalServerError, httpapi.CodeInternal
	if problem := (*httpapi.Problem)(nil); errors.As(err, &problem) {
		status, code = problem.Status, problem.Code
	}
	switch {
	case code == httpapi.CodeRateLimited:
		return contract.OutcomeRateLimited, q.level()
	case code == codeQuotaExceeded:
		return contract.OutcomeQuotaExceeded, reasonOf(q.refused)
	case code == codeOverloaded || status >= http.StatusInternalServerError:
		return contract.OutcomeOverloaded, code
	}
	return contract.OutcomeRejected, code
}

// reasonOf is why the quota refused a request; empty: it is exhausted.
func reasonOf(refused intake.Refusal) string {
	switch {
	case refused.Verdict == ingest.Suspended:
		return contract.ReasonSuspended
	case refused.Budget == nil:
		return ""
	case refused.Budget.Key != "":
		return contract.ReasonKeyBudget
	}
	return contract.ReasonProjectBudget
}

// level returns the level whose limit the request met.
func (q *request) level() string {
	switch {
	case q.admission.Wasted:
		return levelWaste
	case q.admission.Time.IsZero(): // its organization's levels were not reached
		return string(fairshare.ScopeClient)
	}
	return string(q.admission.Rate.Scope)
}

// bytes returns the entries' bytes as charged, or if unread those
// received or announced.
func (q *request) bytes() int64 {
	switch {
	case q.charged > 0:
		return q.charged
	case q.received > 0:
		return q.received
	}
	return max(0, min(q.r.ContentLength, int64(q.in.Bodies.max)))
}

// refuse answers and reports a request over the quota; nil if it
// passes. exhausts: no later request passes either.
func (q *request) refuse(refused intake.Refusal, exhausts bool) error {
	q.refused = refused
	if refused.Verdict != ingest.Suspended && refused.Verdict != ingest.Exhausted {
		return refusal(refused)
	}
	met := refused.Quota
	if refused.Budget != nil {
		met = refused.Budget.QuotaStatus
	}
	fact := outcomes.Refusal{
		Organization: q.caller.Organization, Project: q.caller.Project, APIKey: q.caller.ID, Environment: q.caller.Environment,
		RequestID: httpapi.RequestID(q.r.Context()), At: refused.At.UTC(), Bytes: q.bytes(), Remaining: met.Remaining,
		PeriodStart: met.ResetsAt.Add(-met.Period).UTC(), Quota: met.Limit, Since: met.Since, Exhausts: exhausts, Reason: reasonOf(refused),
	}
	q.in.Service.Outcomes.Refuse(fact)
	return refusal(refused)
}
