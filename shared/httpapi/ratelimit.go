package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

// CodeRateLimited is the code of every 429 for too many requests.
const CodeRateLimited = "rate_limited"

// SetRateLimit sets the interface's headers X-RateLimit-*.
// AppendPolicy and AppendRateLimit write RateLimit-Policy and
// RateLimit, of draft-ietf-httpapi-ratelimit-headers.
func SetRateLimit(header http.Header, result fairshare.Result) {
	header.Set("X-RateLimit-Limit", strconv.Itoa(result.Limit))
	header.Set("X-RateLimit-Remaining", strconv.Itoa(result.Remaining))
	header.Set("X-RateLimit-Reset", strconv.FormatInt(ceilSeconds(result.Full.UnixNano()), 10))
	header.Set("X-RateLimit-Scope", string(result.Scope))
}

// AppendPolicy appends one level's policy to the text of RateLimit-Policy.
func AppendPolicy(text []byte, scope fairshare.Scope, perMinute int) []byte {
	if len(text) > 0 {
		text = append(text, ", "...)
	}
	text = append(append(append(text, '"'), scope...), `";q=`...)
	return append(strconv.AppendInt(text, int64(perMinute), 10), ";w=60"...)
}

// AppendRateLimit appends what is left at the tightest level to the text of
// RateLimit.
func AppendRateLimit(text []byte, result fairshare.Result, now time.Time) []byte {
	text = append(append(append(text, '"'), result.Scope...), `";r=`...)
	text = strconv.AppendInt(text, int64(result.Remaining), 10)
	return strconv.AppendInt(append(text, ";t="...), Seconds(result.Full.Sub(now)), 10)
}

// RateLimited is the 429 for too many requests; who is what the
// limit is for, such as "API key".
func RateLimited(result fairshare.Result, who string) *Problem {
	return NewProblem(http.StatusTooManyRequests, CodeRateLimited,
		"There are too many requests: the limit is "+strconv.Itoa(result.Limit)+" a minute for this "+who+".").RetryAfter(result.RetryAfter)
}

// Seconds is d in whole seconds, rounded up, never negative.
func Seconds(d time.Duration) int64 { return int64(max(0, (d+time.Second-1)/time.Second)) }

// ceilSeconds is a time in whole seconds, rounded up.
func ceilSeconds(nanoseconds int64) int64 {
	return (nanoseconds + int64(time.Second) - 1) / int64(time.Second)
}
