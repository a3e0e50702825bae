package http

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

// setLimits sets the headers of rate limits and quota: the interface's
// and those of draft-ietf-httpapi-ratelimit-headers.
func setLimits(header http.Header, p admission.Admission) {
	httpapi.SetRateLimit(header, p.Rate)
	header.Set("RateLimit-Policy", policies(p))
	setRateLimit(header, p, p.Quota)
}

// policies are the rules: a bucket for each level and the period's quota.
func policies(p admission.Admission) string {
	text := make([]byte, 0, 160)
	for i, scope := range [...]fairshare.Scope{fairshare.ScopeOrganization, fairshare.ScopeProject, fairshare.ScopeKey} {
		text = httpapi.AppendPolicy(text, scope, p.Limits[i])
	}
	text = strconv.AppendInt(append(text, `, "quota";q=`...), p.Quota.Limit, 10)
	text = append(text, `;qu="content-bytes";w=`...)
	return string(strconv.AppendInt(text, int64(p.Quota.Period/time.Second), 10))
}

// setRateLimit sets what is left at the tightest level and of the quota.
func setRateLimit(header http.Header, p admission.Admission, quota ingest.QuotaStatus) {
	text := httpapi.AppendRateLimit(make([]byte, 0, 96), p.Rate, p.Time)
	text = strconv.AppendInt(append(text, `, "quota";r=`...), quota.Remaining, 10)
	text = strconv.AppendInt(append(text, ";t="...), httpapi.Seconds(quota.ResetsAt.Sub(p.Time)), 10)
	header.Set("RateLimit", string(text))
}

func rateLimited(limited fairshare.Result) *httpapi.Problem {
	if limited.Scope == fairshare.ScopeClient {
		return httpapi.RateLimited(limited, "address without a valid key")
	}
	return httpapi.RateLimited(limited, string(limited.Scope))
}

const codeQuotaExceeded = "quota_exceeded"

// refusal is the answer to a request that the quota or a budget
// refuses; nil: none does.
func refusal(refused intake.Refusal) error {
	switch refused.Verdict {
	case ingest.Admitted:
		return nil
	case ingest.Unknown:
		return httpapi.Unavailable("The organization's account is not known yet. Send the whole request again.", time.Second)
	case ingest.Contended:
		return errors.Join(contended(refused.Quota.Lag), errNoFault)
	}
	quota := refused.Quota
	resets := quota.ResetsAt.UTC().Format(time.RFC3339)
	problem := httpapi.NewProblem(http.StatusTooManyRequests, codeQuotaExceeded, whyRefused(refused, resets)).
		RetryAfter(quota.ResetsAt.Sub(refused.At)).With("resets_at", resets).With("quota", quotaOf(quota))
	if refused.Budget != nil {
		problem.With("budget", budgetBody{refused.Budget.Project, refused.Budget.Key, quotaOf(refused.Budget.QuotaStatus)})
	}
	return problem
}

// Bounds of the wait for the ledger's count.
const (
	minCountWait = time.Second
	maxCountWait = 30 * time.Second
)

// contended is the answer while uncounted requests may turn out to be
// free, or other replicas may have used up the rest. The wait follows
// the ledger's lag.
func contended(lag time.Duration) *httpapi.Problem {
	wait := min(max(lag, minCountWait), maxCountWait)
	return httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
		"Whether the quota covers this request depends on requests that are not counted yet. Send the whole request again.").RetryAfter(wait)
}

// whyRefused names the limit that refuses a request, and until when.
func whyRefused(refused intake.Refusal, resets string) string {
	limit, of := refused.Quota.Limit, "quota"
	switch budget := refused.Budget; {
	case refused.Verdict == ingest.Suspended:
		return "The organization is suspended, or is a test of billing: it can't send entries. Its quota resets at " + resets + "."
	case budget != nil && budget.Key != "":
		limit, of = budget.Limit, "budget of the API key "+budget.Key
	case budget != nil:
		limit, of = budget.Limit, "budget of the project "+budget.Project
	}
	return "The " + of + ", " + strconv.FormatInt(limit, 10) + " bytes, does not cover this request. It resets at " + resets + "."
}

// budgetBody is the refusing budget.
type budgetBody struct {
	Project string `json:"project,omitempty" description:"Whose it is, if a project's"`
	Key     string `json:"key,omitempty" description:"Whose it is, if an API key's"`
	quotaBody
}

type quotaBody struct {
	Limit     int64  `json:"limit"`
	Used      int64  `json:"used"`
	Remaining int64  `json:"remaining"`
	ResetsAt  string `json:"resets_at" format:"date-time"`
}

func quotaOf(status ingest.QuotaStatus) quotaBody {
	return quotaBody{status.Limit, status.Used, status.Remaining, status.ResetsAt.UTC().Format(time.RFC3339)}
}

// How slowly a body may come. It begins with idleTime and never has more: a
// stalled body holds its memory no longer. Useful bytes, after decompression,
// win time: a second for each minPace of a small body, and for each largePace
// beyond. A body has bodyTime in all; then the answer has answerTime.
const (
	idleTime   = 10 * time.Second
	minPace    = 16 << 10
	largePace  = 64 << 10
	bodyTime   = 3 * time.Minute
	answerTime = time.Minute
)

// A pace is the time that one body has.
type pace struct {
	deadline time.Time // of the next useful bytes
	last     time.Time // of the whole body
	useful   int
}

func newPace(now time.Time) pace {
	return pace{deadline: now.Add(idleTime), last: now.Add(bodyTime)}
}

// left is how long the body may wait for more; not positive: it is too slow.
func (p *pace) left(now time.Time) time.Duration { return p.deadline.Sub(now) }

// received adds useful bytes.
func (p *pace) received(now time.Time, useful int) {
	slowest := minPace
	if p.useful += useful; p.useful > smallBody {
		slowest = largePace
	}
	p.deadline = p.deadline.Add(time.Duration(useful) * time.Second / time.Duration(slowest))
	for _, limit := range [...]time.Time{now.Add(idleTime), p.last} {
		if p.deadline.After(limit) {
			p.deadline = limit
		}
	}
}

// pause adds time during which the service made the body wait.
func (p *pace) pause(waited time.Duration) {
	p.deadline, p.last = p.deadline.Add(waited), p.last.Add(waited)
}

// usefulIn returns the bytes without the white space around them.
func usefulIn(came []byte) int { return len(bytes.Trim(came, " \t\r\n")) }

// freeWaste is the white space and the like that is no waste; more is
// none up to the entries' size.
const freeWaste = 64 << 10

// wasteOf returns the wasted bytes of a partly accepted body: rejected
// entries, and excessive white space and the like.
func wasteOf(batch *ingest.Batch, came int64) int64 {
	entries := batch.Bytes + batch.RejectedBytes
	return batch.RejectedBytes + max(0, came-2*entries-freeWaste)
}

// wastedTooMuch is the answer to a sender over its limit of waste.
func wastedTooMuch(who string, wait time.Duration) *httpapi.Problem {
	return httpapi.NewProblem(http.StatusTooManyRequests, httpapi.CodeRateLimited,
		"Too many bytes came of which nothing could be accepted, for this "+who+". "+
			"Correct the faults of the earlier answers, and send again after the time in Retry-After.").
		RetryAfter(wait)
}

// isServersFault reports whether a request failed on our side.
func isServersFault(err error) bool {
	var problem *httpapi.Problem
	return errors.As(err, &problem) && problem.Status >= http.StatusInternalServerError
}
