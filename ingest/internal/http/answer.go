package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

// answer writes a 200 with what was accepted, by hand, as every
// request takes this path. changes are those of a lenient request.
func answer(w http.ResponseWriter, batch *ingest.Batch, changes *ingest.Changes, bytes int64, quota ingest.QuotaStatus) {
	body := make([]byte, 0, 256)
	body = strconv.AppendQuote(append(body, `{"message":`...), summary(batch))
	body = strconv.AppendInt(append(body, `,"processed":`...), int64(batch.Valid()), 10)
	body = strconv.AppendInt(append(body, `,"bytes_used":`...), bytes, 10)
	body = strconv.AppendInt(append(body, `,"rejected":`...), int64(batch.Rejected), 10)
	body = strconv.AppendInt(append(body, `,"quota":{"limit":`...), quota.Limit, 10)
	body = strconv.AppendInt(append(body, `,"used":`...), quota.Used, 10)
	body = strconv.AppendInt(append(body, `,"remaining":`...), quota.Remaining, 10)
	body = quota.ResetsAt.UTC().AppendFormat(append(body, `,"resets_at":"`...), time.RFC3339)
	body = append(body, `"}`...)
	if changes != nil {
		body = appendChanges(body, changes)
	}
	if len(batch.Faults) > 0 {
		body = appendFaults(body, batch)
	}
	body = append(body, '}')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
}

// appendChanges adds in how many entries which members were normalized.
func appendChanges(body []byte, changes *ingest.Changes) []byte {
	body = strconv.AppendInt(append(body, `,"normalized":`...), int64(changes.Entries), 10)
	body = strconv.AppendInt(append(body, `,"normalized_members":{"level":`...), int64(changes.Levels), 10)
	body = strconv.AppendInt(append(body, `,"timestamp":`...), int64(changes.Timestamps), 10)
	body = strconv.AppendInt(append(body, `,"error.stack_trace":`...), int64(changes.StackTraces), 10)
	return append(body, '}')
}

func appendFaults(body []byte, batch *ingest.Batch) []byte {
	faults, err := json.Marshal(batch.Faults)
	if err != nil {
		panic("BUG: cannot encode faults: " + err.Error())
	}
	body = append(append(body, `,"errors":`...), faults...)
	if batch.FaultsTruncated {
		body = append(body, `,"errors_truncated":true`...)
	}
	return body
}

// summary describes what was accepted.
func summary(batch *ingest.Batch) string {
	accepted := strconv.Itoa(batch.Valid())
	switch {
	case batch.Rejected > 0:
		return "Accepted " + accepted + " of " + strconv.Itoa(batch.Entries) + " entries; " + strconv.Itoa(batch.Rejected) + " rejected"
	case batch.Entries == 1:
		return "Accepted 1 entry"
	}
	return "Accepted " + accepted + " entries"
}

// invalidBody is the answer to a body without any acceptable entry.
func (q *request) invalidBody(err error) error {
	var invalid *ingest.BodyError
	if !errors.As(err, &invalid) {
		return err
	}
	q.unread = ingest.Sample{Text: invalid.Near, Cut: invalid.Cut}
	problem := httpapi.NewProblem(http.StatusBadRequest, string(invalid.Code), invalid.Detail)
	fault := httpapi.Fault{Pointer: invalid.Pointer, Code: string(invalid.Code), Detail: invalid.Detail, Fix: invalid.Fix}
	if index, err := strconv.Atoi(strings.TrimPrefix(invalid.Pointer, "/logs/")); err == nil {
		fault.Index = &index // so that a client can send the others
	}
	problem.Faults = []httpapi.Fault{fault}
	return problem.With("offset", invalid.Offset)
}

// invalidEntries is the answer if no entry can be accepted, or not all
// and handling is strict.
func invalidEntries(batch *ingest.Batch, strict bool) error {
	detail := fmt.Sprintf("None of the %d entries is valid. Nothing was stored.", batch.Entries)
	switch {
	case strict && batch.Rejected < batch.Entries:
		detail = fmt.Sprintf("%d of the %d entries are invalid, and handling is strict. Nothing was stored.", batch.Rejected, batch.Entries)
	case batch.Entries == 1:
		detail = "The entry is invalid. Nothing was stored."
	}
	problem := httpapi.NewProblem(http.StatusBadRequest, string(ingest.CodeInvalidEntries), detail)
	for i := range batch.Faults {
		f := &batch.Faults[i]
		index := f.Index
		problem.Faults = append(problem.Faults, httpapi.Fault{Index: &index, Pointer: f.Pointer, Code: string(f.Code), Detail: f.Detail, Fix: f.Fix})
	}
	problem.With("rejected", batch.Rejected).With("processed", 0)
	if batch.FaultsTruncated {
		problem.With("errors_truncated", true)
	}
	return problem
}

// levelWaste is the level of a refusal for the organization's wasted bytes.
const levelWaste = "wasted_bytes"

// outcomeFacts are collected for the count of a request's outcome.
type outcomeFacts struct {
	refused                 intake.Refusal // zero: not refused
	keyInBody               bool
	received                int64            // bytes of the body
	entries, charged        int64            // as far as they were read: charged are the bytes of the valid ones
	rejected, rejectedBytes int64            // of a request of which other entries were accepted
	dropped                 map[string]int64 // what the client says it dropped, by reason; bounded by dropReasons
	ruling                  ingest.Ruling
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
	for _, kind := range []ingest.RuleKind{ingest.RuleDrop, ingest.RuleSample} {
		if entries := q.ruling.Entries[kind]; entries > 0 {
			q.in.Service.Outcomes.Note(q.caller.Principal, outcomes.Request{
				Outcome: contract.OutcomeDroppedByRule, Reason: kind.String(), Entries: entries, Bytes: q.ruling.Bytes[kind],
			})
		}
	}
	for reason, entries := range q.dropped {
		q.in.Service.Outcomes.Note(q.caller.Principal, outcomes.Request{Outcome: contract.OutcomeDropped, Reason: reason, Entries: entries})
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

func (b *Bodies) tooLarge() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusBadRequest, "body_too_large",
		fmt.Sprintf("The body has more than %d bytes after decompression. Send fewer entries in one request.", b.max)).With("limit", b.max)
}

// errNoFault marks errors that are not the sender's fault.
var errNoFault = errors.New("the sender is not to blame")

// problem is the answer to an error while a body was read.
func (b *Bodies) problem(err error, how encoding) error {
	var known *httpapi.Problem
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fairshare.ErrEvicted):
		return evicted()
	case errors.Is(err, admission.ErrOverShare):
		return errors.Join(throttled(), errNoFault)
	case errors.Is(err, fairshare.ErrTooMany):
		return errors.Join(tooManyUnderWay(), errNoFault)
	case errors.Is(err, fairshare.ErrFull):
		return errors.Join(overloaded(), errNoFault)
	case errors.Is(err, errBodyTooLarge):
		return b.tooLarge()
	case errors.Is(err, errNeverFits):
		return httpapi.NewProblem(http.StatusBadRequest, "body_too_large",
			"The body takes more memory to be rewritten to entries than there is. Send fewer in one request, and OTLP as protobuf.")
	case errors.Is(err, errTooSlow), errors.Is(err, os.ErrDeadlineExceeded):
		return httpapi.NewProblem(http.StatusBadRequest, "incomplete_body",
			fmt.Sprintf("The body came too slowly. After the first %s and within %s in all, the minimum upload rate is %d bytes a second, "+
				"and beyond %d bytes it is %d bytes a second, counted after decompression and without insignificant white space.",
				idleTime, bodyTime, minPace, smallBody, largePace)).
			WithHeader("Connection", "close")
	case errors.Is(err, errWindow):
		return httpapi.NewProblem(http.StatusBadRequest, "invalid_encoding",
			fmt.Sprintf("The body needs a window of more than %d bytes to be decompressed. Compress it with a smaller window.", zstdWindow))
	case errors.Is(err, errPadded):
		return httpapi.NewProblem(http.StatusBadRequest, "invalid_encoding",
			fmt.Sprintf("The body has more than twice as many bytes as it brings, and %d. Send it without empty blocks, frames and members.", padding))
	case how == identityEncoding:
		return httpapi.NewProblem(http.StatusBadRequest, "incomplete_body", "The body ended before its announced length.")
	}
	return httpapi.NewProblem(http.StatusBadRequest, "invalid_encoding", fmt.Sprintf("The body can't be read as %s.", how))
}

const codeOverloaded = "overloaded"

func overloaded() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"The service has more to do than it can hold. Send the whole request again.").RetryAfter(time.Second)
}

func tooManyUnderWay() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"As many requests as one organization, or one address without a key, may have are under way. "+
			"Send the whole request again when some of them are answered.").RetryAfter(time.Second)
}

func throttled() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"Large bodies of this organization come faster than its share while others send, too. Send the whole request again when one of those "+
			"under way is answered, or in bodies of at most 1 MiB.").RetryAfter(time.Second)
}

func overShare(wait time.Duration) *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"This organization sends more than its share while others send, too, and its requests under way have to come first. Send the whole request again.").
		RetryAfter(wait)
}

// evictedRetry is the Retry-After of an evicted body.
const evictedRetry = 5 * time.Second

func evicted() *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"This request was evicted under memory pressure: your requests held the most memory. Send fewer entries in one request, or send them faster.").
		RetryAfter(evictedRetry).WithHeader("Connection", "close")
}

// A wire reads a body as it is sent, up to its limit, and only
// while it comes fast enough.
type wire struct {
	source   io.Reader
	control  *http.ResponseController
	clock    func() time.Time
	body     *Body
	packed   bool
	pace     pace
	got, max int // bytes as they were sent
	inflated int // bytes after decompression
	reads    int
}

func newWire(w http.ResponseWriter, r *http.Request, b *Bodies, body *Body, how encoding) *wire {
	return &wire{
		source: r.Body, control: http.NewResponseController(w), clock: b.clock, body: body, packed: how != identityEncoding,
		pace: newPace(b.clock()), max: b.max + wireSlack,
	}
}

// padding is how much of a compressed body may come without content: a
// block of zstd, and what is buffered of it first.
const padding = 512 << 10

// perRead is charged for each chunk of an ordinary body: chunks of a
// byte cost more than their content.
const perRead = 4 << 10

// perPadding is what each byte of mostly padding counts as waste: a
// block of five bytes is as much work as many of content.
const perPadding = 8

// charge returns what an ordinary body takes of its holder's share.
func (w *wire) charge() int64 { return int64(max(w.got, w.inflated) + w.reads*perRead) }

func (w *wire) Read(p []byte) (int, error) {
	left := w.pace.left(w.clock())
	if left <= 0 {
		return 0, errTooSlow
	}
	// The connection's own deadline, so the system's clock.
	_ = w.control.SetReadDeadline(time.Now().Add(left)) //nolint:forbidigo // see above
	if w.body.lease.Evicted() {                         // after the deadline was set: who ends a lease sets one that is over
		return 0, fairshare.ErrEvicted
	}
	n, err := w.source.Read(p)
	w.reads++
	switch w.got += n; {
	case w.got > w.max:
		return 0, errBodyTooLarge // without the bytes: who has those it needs passes over an error
	case w.packed && w.got > 2*w.inflated+padding:
		return 0, errPadded
	}
	return n, err
}

// stop makes a Read under way, and every later one, fail. Any
// goroutine may call it.
func (w *wire) stop() { _ = w.control.SetReadDeadline(time.Unix(1, 0)) }

// finish ends the deadline for reading and begins that of the answer: a slow
// body must not leave stored entries unanswered.
func (w *wire) finish() {
	_ = w.control.SetReadDeadline(time.Time{})
	_ = w.control.SetWriteDeadline(time.Now().Add(answerTime)) //nolint:forbidigo // the connection's deadline
}
