package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// A Caller is as whom a request is sent.
type Caller map[string]string

// ByKey is the caller with an API key.
func ByKey(key string) Caller { return apiKey(key) }

// ByToken is the caller with a service token.
func ByToken(token string) Caller { return bearer(token) }

// Read reads what is at a path below /v1.
func Read[T any](ctx context.Context, c *Client, caller Caller, path string, query url.Values) (T, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return call[T](ctx, c, Request{Method: http.MethodGet, Path: path, Header: caller})
}

// A Listing is a page of a list, whose items are as the API sends them.
type Listing struct {
	List[json.RawMessage]
	Incomplete bool `json:"incomplete,omitempty"` // the search goes on at the next page
}

// Collect reads the first items of a list, at most limit, page by page.
func Collect(ctx context.Context, c *Client, caller Caller, path string, query url.Values, limit int) (items []json.RawMessage, err error) {
	largest, _ := strconv.Atoi(pageLimit)
	for {
		query.Set("limit", strconv.Itoa(min(limit-len(items), largest)))
		page, err := Read[Listing](ctx, c, caller, path, query)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.NextCursor == nil || len(items) >= limit {
			return items, nil
		}
		query.Set("cursor", *page.NextCursor)
	}
}
