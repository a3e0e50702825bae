package http

import (
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
