package http

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/rate"
)

// setLimits tells the client of its rate limits and quota: the headers that the interface has, and those of the IETF's
// draft-ietf-httpapi-ratelimit-headers.
func setLimits(header http.Header, p admission.Passage) {
	header.Set("X-RateLimit-Limit", strconv.Itoa(p.Rate.Limit))
	header.Set("X-RateLimit-Remaining", strconv.Itoa(p.Rate.Remaining))
	header.Set("X-RateLimit-Reset", strconv.FormatInt(ceilSeconds(p.Rate.Full), 10))
	header.Set("X-RateLimit-Scope", string(p.Rate.Scope))
	header.Set("RateLimit-Policy", policies(p))
	setRateLimit(header, p, p.Quota)
}

// policies are the rules: a bucket for each level, and the quota of the period.
func policies(p admission.Passage) string {
	text := make([]byte, 0, 160)
	for i, scope := range [...]rate.Scope{rate.ScopeOrganization, rate.ScopeProject, rate.ScopeKey} {
		text = append(append(append(text, '"'), scope...), `";q=`...)
		text = append(strconv.AppendInt(text, int64(p.Limits[i]), 10), `;w=60, `...)
	}
	text = strconv.AppendInt(append(text, `"quota";q=`...), p.Quota.Limit, 10)
	text = append(text, `;qu="content-bytes";w=`...)
	return string(strconv.AppendInt(text, int64(p.Quota.Period/time.Second), 10))
}

// setRateLimit tells what is left: at the tightest level, and of the quota.
func setRateLimit(header http.Header, p admission.Passage, quota ingest.QuotaStatus) {
	text := make([]byte, 0, 96)
	text = append(append(append(text, '"'), p.Rate.Scope...), `";r=`...)
	text = strconv.AppendInt(text, int64(p.Rate.Remaining), 10)
	text = strconv.AppendInt(append(text, ";t="...), seconds(time.Duration(p.Rate.Full-p.Time.UnixNano())), 10)
	text = strconv.AppendInt(append(text, `, "quota";r=`...), quota.Remaining, 10)
	text = strconv.AppendInt(append(text, ";t="...), seconds(quota.ResetsAt.Sub(p.Time)), 10)
	header.Set("RateLimit", string(text))
}

// seconds is d in whole seconds, rounded up, never negative.
func seconds(d time.Duration) int64 { return int64(max(0, (d+time.Second-1)/time.Second)) }

// ceilSeconds is a time in whole seconds, rounded up.
func ceilSeconds(nanoseconds int64) int64 {
	return (nanoseconds + int64(time.Second) - 1) / int64(time.Second)
}

func rateLimited(limited rate.Result) *httpapi.Problem {
	scope := string(limited.Scope)
	if limited.Scope == rate.ScopeClient {
		scope = "address without a valid key"
	}
	return httpapi.NewProblem(http.StatusTooManyRequests, "rate_limited",
		"There are too many requests: the limit is "+strconv.Itoa(limited.Limit)+" a minute for this "+scope+".").RetryAfter(limited.RetryAfter)
}

// refusal is the answer to a request that the quota does not let pass, or nil.
func refusal(verdict ingest.Verdict, quota ingest.QuotaStatus, now time.Time) error {
	switch verdict {
	case ingest.Admitted:
		return nil
	case ingest.Unknown:
		return httpapi.Unavailable("The organization's account is not known yet. Send the whole request again.", time.Second)
	case ingest.Contended:
		return overloaded()
	}
	resets := quota.ResetsAt.UTC().Format(time.RFC3339)
	detail := "The quota of " + strconv.FormatInt(quota.Limit, 10) + " bytes does not cover this request. It resets at " + resets + "."
	if verdict == ingest.Suspended {
		detail = "The organization is suspended: it can't send entries. Its quota resets at " + resets + "."
	}
	return httpapi.NewProblem(http.StatusTooManyRequests, "quota_exceeded", detail).
		RetryAfter(quota.ResetsAt.Sub(now)).With("resets_at", resets).With("quota", quotaOf(quota))
}

type quotaBody struct {
	Limit     int64  `json:"limit"`
	Used      int64  `json:"used"`
	Remaining int64  `json:"remaining"`
	ResetsAt  string `json:"resets_at"`
}

func quotaOf(status ingest.QuotaStatus) quotaBody {
	return quotaBody{status.Limit, status.Used, status.Remaining, status.ResetsAt.UTC().Format(time.RFC3339)}
}
