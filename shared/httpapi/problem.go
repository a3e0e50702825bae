package httpapi

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

// Codes of every module. A code is part of the interface: it is never renamed.
const (
	CodeInvalidRequest   = "invalid_request"
	CodeNotFound         = "not_found"
	CodeMethodNotAllowed = "method_not_allowed"
	CodeConflict         = "conflict"
	CodeForbidden        = "forbidden"
	CodeHTTPSRequired    = "https_required"
	CodeUnavailable      = "unavailable"
	CodeInternal         = "internal"
)

// maxFaults limits the faults in one answer; a client repairs those first.
const maxFaults = 100

// A Fault is one fault of a request, with its remedy.
type Fault struct {
	Index   *int   `json:"index,omitempty" description:"Of the entry at fault, if any"`
	Pointer string `json:"pointer" description:"To the value at fault: RFC 6901, or ?name for a query parameter"`
	Code    string `json:"code"`
	Detail  string `json:"detail" description:"What is wrong"`
	Fix     string `json:"fix" description:"What to do"`
}

// A Problem is an error answer: RFC 9457, with the members of all of
// Weir's errors. It is an error, so a handler returns it.
type Problem struct {
	Status int
	Code   string
	Detail string
	Faults []Fault
	Extra  map[string]any // further members of the body, such as resets_at; bounded by the code's
	Header http.Header    // further headers, such as Retry-After
}

// NewProblem returns a problem. Detail is for people: it names the
// offending value and the way out.
func NewProblem(status int, code, detail string) *Problem {
	return &Problem{Status: status, Code: code, Detail: detail}
}

// Invalid returns a 400 for one fault at pointer; fix is the remedy.
func Invalid(pointer, code, detail, fix string) *Problem {
	problem := NewProblem(http.StatusBadRequest, code, detail)
	problem.Faults = []Fault{{Pointer: pointer, Code: code, Detail: detail, Fix: fix}}
	return problem
}

// NotFound returns the same answer for an unknown id and for one
// of another organization.
func NotFound(what, id string) *Problem {
	return NewProblem(http.StatusNotFound, CodeNotFound, fmt.Sprintf("There is no %s %q.", what, id))
}

// Unavailable returns a 500 for a dependency that can't be reached now.
// The whole request may be sent again.
func Unavailable(detail string, retryAfter time.Duration) *Problem {
	return NewProblem(http.StatusInternalServerError, CodeUnavailable, detail).RetryAfter(retryAfter)
}

// Error makes a Problem an error.
func (p *Problem) Error() string {
	return p.Code + ": " + p.Detail
}

// With adds a member to the body.
func (p *Problem) With(member string, value any) *Problem {
	if p.Extra == nil {
		p.Extra = map[string]any{}
	}
	p.Extra[member] = value
	return p
}

// WithHeader adds a header to the answer.
func (p *Problem) WithHeader(name, value string) *Problem {
	if p.Header == nil {
		p.Header = http.Header{}
	}
	p.Header.Set(name, value)
	return p
}

// RetryAfter asks the client to wait for d, in whole seconds, rounded
// up, at least 1.
func (p *Problem) RetryAfter(d time.Duration) *Problem {
	seconds := max(1, int64((d+time.Second-1)/time.Second))
	return p.WithHeader("Retry-After", strconv.FormatInt(seconds, 10))
}

// redacted returns the problem without credentials that the request had
// in the wrong place.
func (p *Problem) redacted() *Problem {
	redacted := *p
	redacted.Detail, redacted.Faults = Redact(p.Detail), slices.Clone(p.Faults)
	for i, fault := range redacted.Faults {
		redacted.Faults[i].Pointer, redacted.Faults[i].Detail, redacted.Faults[i].Fix = Redact(fault.Pointer), Redact(fault.Detail), Redact(fault.Fix)
	}
	return &redacted
}

// ProblemBody is the body of a Problem. A problem's Extra is beside it.
type ProblemBody struct {
	Type            string  `json:"type" description:"urn:weir:problem: and the code"`
	Title           string  `json:"title" description:"The text of the status"`
	Status          int     `json:"status"`
	Detail          string  `json:"detail" description:"For people: it names what is wrong and the way out"`
	Code            string  `json:"code" description:"For programs: it never changes"`
	Message         string  `json:"message" description:"The same as detail"`
	RequestID       string  `json:"request_id"`
	Errors          []Fault `json:"errors,omitempty" description:"Each fault of the request"`
	ErrorsTruncated bool    `json:"errors_truncated,omitempty" description:"There are more faults than errors names"`
}

func (p *Problem) body(requestID string) ([]byte, error) {
	base, err := json.Marshal(ProblemBody{
		Type:            "urn:weir:problem:" + p.Code,
		Title:           http.StatusText(p.Status),
		Status:          p.Status,
		Detail:          p.Detail,
		Code:            p.Code,
		Message:         p.Detail,
		RequestID:       requestID,
		Errors:          p.Faults[:min(len(p.Faults), maxFaults)],
		ErrorsTruncated: len(p.Faults) > maxFaults,
	})
	if err != nil || len(p.Extra) == 0 {
		return base, err
	}
	extra, err := json.Marshal(p.Extra)
	if err != nil {
		return nil, err
	}
	return append(append(base[:len(base)-1], ','), extra[1:]...), nil
}

// redacted replaces a Secret's text.
const redacted = "[redacted]"

// A Secret is a text that is never shown: not in logs, not in errors,
// not in JSON.
type Secret string

// Reveal returns the text. Review every call.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return redacted }

// GoString hides the secret.
func (s Secret) GoString() string { return redacted }

// Format hides the secret for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

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
