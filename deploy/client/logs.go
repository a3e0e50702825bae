package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// pageLimit is the API's largest page.
const pageLimit = "1000"

// A Batch is the body of a post and its headers.
type Batch struct {
	Body           []byte
	Encoding       string // Content-Encoding; "" is none
	IdempotencyKey string // "" is none
	Strict         bool   // any invalid entry refuses the batch
}

// Accepted is the answer to a post.
type Accepted struct {
	Message   string  `json:"message"`
	Processed int     `json:"processed"`
	BytesUsed int64   `json:"bytes_used"`
	Rejected  int     `json:"rejected"`
	Errors    []Fault `json:"errors"`
}

// Post sends a batch.
func (c *Client) Post(ctx context.Context, key string, batch Batch) (Accepted, error) {
	return call[Accepted](ctx, c, batch.Request(key))
}

// Request is the call that posts the batch.
func (b Batch) Request(key string) Request {
	header := apiKey(key)
	header["Content-Type"] = "application/json"
	if b.Encoding != "" {
		header["Content-Encoding"] = b.Encoding
	}
	if b.IdempotencyKey != "" {
		header["Idempotency-Key"] = b.IdempotencyKey
	}
	if b.Strict {
		header["Prefer"] = "handling=strict"
	}
	return Request{Method: http.MethodPost, Path: "/logs", Header: header, Body: b.Body}
}

// A StoredEntry is an entry as it is read back.
type StoredEntry struct {
	ID           string          `json:"id"`
	Organization string          `json:"organization"`
	Project      string          `json:"project"`
	Environment  string          `json:"environment"`
	ReceivedAt   time.Time       `json:"received_at"`
	Entry        json.RawMessage `json:"entry"` // byte for byte as it was accepted
}

// A LogsQuery selects entries; a zero field selects all.
type LogsQuery struct {
	Project string
	From    time.Time
	To      time.Time
	Levels  []string
	Words   string
	Limit   int // of Page; 0: as many as a page can hold
}

func (q LogsQuery) path() string {
	values := url.Values{"project": {q.Project}, "limit": {pageLimit}, "level": q.Levels}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Words != "" {
		values.Set("q", q.Words)
	}
	if !q.From.IsZero() {
		values.Set("from", q.From.UTC().Format(time.RFC3339Nano))
	}
	if !q.To.IsZero() {
		values.Set("to", q.To.UTC().Format(time.RFC3339Nano))
	}
	return "/logs?" + values.Encode()
}

// EachLog calls visit with every entry of the query, newest first.
func (c *Client) EachLog(ctx context.Context, key string, query LogsQuery, visit func(StoredEntry) error) error {
	return each(ctx, c, query.path(), apiKey(key), visit)
}

// Logs reads the first page.
func (c *Client) Logs(ctx context.Context, key string, query LogsQuery) (List[StoredEntry], error) {
	return call[List[StoredEntry]](ctx, c, Request{Method: http.MethodGet, Path: query.path(), Header: apiKey(key)})
}
