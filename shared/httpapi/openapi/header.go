package openapi

import (
	"net/http"
	"strings"
)

// rateLimitHeaders are those of each request that was counted.
var rateLimitHeaders = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Scope", "RateLimit-Policy", "RateLimit"}

const retryAfter = "Retry-After"

// headersOf refers to the headers of an answer.
func (w *writer) headersOf(status int) object {
	var names []string
	switch {
	case status < http.StatusBadRequest:
		names = rateLimitHeaders
	case status == http.StatusTooManyRequests:
		names = append([]string{retryAfter}, rateLimitHeaders...)
	case status >= http.StatusInternalServerError:
		names = []string{retryAfter}
	}
	headers := object{}
	for _, name := range names {
		headers[name] = object{"$ref": "#/components/headers/" + w.headerName(name)}
	}
	return headers
}

func (w *writer) headerName(header string) string {
	return w.prefix + strings.ReplaceAll(header, "-", "")
}

// headers are the components that headersOf refers to.
func (w *writer) headers() object {
	components := object{}
	for name, header := range map[string][2]string{
		"X-RateLimit-Limit":     {"integer", "Requests per minute of the level with the fewest tokens left"},
		"X-RateLimit-Remaining": {"integer", "Whole tokens left there"},
		"X-RateLimit-Reset":     {"integer", "Unix time in seconds at which that bucket is full again"},
		"X-RateLimit-Scope":     {"string", "organization, project or key: the API key, service token or session itself"},
		"RateLimit-Policy":      {"string", "draft-ietf-httpapi-ratelimit-headers: the policy of each level"},
		"RateLimit":             {"string", "draft-ietf-httpapi-ratelimit-headers: what is left at the tightest level"},
		retryAfter:              {"integer", "Seconds to wait, at least 1"},
	} {
		components[w.headerName(name)] = object{"required": true, "schema": object{"type": header[0]}, "description": header[1]}
	}
	return components
}
