package client

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
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
	Query   string // see ingest/docs/searching.md
	Limit   int    // of Page; 0: as many as a page can hold
}

func (q LogsQuery) path() string { return "/logs?" + q.values().Encode() }

func (q LogsQuery) values() url.Values {
	values := url.Values{"project": {q.Project}, "limit": {pageLimit}, "level": q.Levels}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Query != "" {
		values.Set("q", q.Query)
	}
	if !q.From.IsZero() {
		values.Set("from", q.From.UTC().Format(time.RFC3339Nano))
	}
	if !q.To.IsZero() {
		values.Set("to", q.To.UTC().Format(time.RFC3339Nano))
	}
	return values
}

// EachLog calls visit with every entry of the query, newest first.
func (c *Client) EachLog(ctx context.Context, key string, query LogsQuery, visit func(StoredEntry) error) error {
	return each(ctx, c, query.path(), apiKey(key), visit)
}

// Logs reads the first page.
func (c *Client) Logs(ctx context.Context, key string, query LogsQuery) (List[StoredEntry], error) {
	return call[List[StoredEntry]](ctx, c, Request{Method: http.MethodGet, Path: query.path(), Header: apiKey(key)})
}

// Limits of the pause before a retry if the answer names none.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// Deliver posts a batch until it is accepted, refused for good, or ctx
// ends. It waits as long as each answer asks, else longer each time.
// The batch needs an idempotency key: with it, any number of attempts
// has the effect of one.
func (c *Client) Deliver(ctx context.Context, key string, batch Batch) (Accepted, error) {
	if batch.IdempotencyKey == "" {
		return Accepted{}, errors.New("cannot deliver a batch that has no idempotency key")
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		accepted, err := c.Post(ctx, key, batch)
		var problem *Problem
		if err == nil || errors.As(err, &problem) && !problem.Temporary() {
			return accepted, err
		}
		wait := pause/2 + rand.N(pause) // at random, so that clients do not return together
		if problem != nil && problem.RetryAfter > 0 {
			wait = problem.RetryAfter
		}
		if lifecycle.Pause(ctx, wait); ctx.Err() != nil {
			return Accepted{}, ctx.Err()
		}
	}
}

// An ErrorGroup is one kind of error and how often it was seen.
type ErrorGroup struct {
	ID           string         `json:"id"`
	Project      string         `json:"project"`
	Title        string         `json:"title"`
	Type         string         `json:"type"`
	Culprit      string         `json:"culprit"`
	Status       string         `json:"status"`
	Count        int64          `json:"count"`
	FirstSeen    time.Time      `json:"first_seen"`
	LastSeen     time.Time      `json:"last_seen"`
	Levels       []string       `json:"levels"`
	Environments []string       `json:"environments"`
	Occurrences  []ErrorSample  `json:"occurrences"`
	Why          map[string]any `json:"why"`
	Similar      []string       `json:"similar"`
	Merged       int64          `json:"merged"`
	Members      []ErrorMember  `json:"members"`
}

// An ErrorMember is a group that was merged into another.
type ErrorMember struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Count int64  `json:"count"`
}

// A Regrouping names where to merge a group, what to take out of it or to split off.
type Regrouping struct {
	Into   string   `json:"into,omitempty"`
	Groups []string `json:"groups,omitempty"`
	Hash   string   `json:"hash,omitempty"`
}

// Regroup merges, unmerges or splits a group, and returns the one that remains.
func (c *Client) Regroup(ctx context.Context, key, group, does string, what Regrouping) (ErrorGroup, error) {
	return c.changeGroup(ctx, key, http.MethodPost, "/error-groups/"+url.PathEscape(group)+"/"+does, what)
}

// A GroupDecision is what to decide about an error group.
type GroupDecision struct {
	Status    string        `json:"status,omitempty"` // resolved, ignored or unresolved
	InRelease string        `json:"in_release,omitempty"`
	Until     *IgnoredUntil `json:"until,omitempty"`
	Assignee  *string       `json:"assignee,omitempty"` // empty: nobody
	Note      string        `json:"note,omitempty"`
}

// IgnoredUntil ends what is ignored, by whatever comes first.
type IgnoredUntil struct {
	At    *time.Time `json:"at,omitempty"`
	Count int64      `json:"count,omitempty"`
	Users int64      `json:"users,omitempty"`
	Per   string     `json:"per,omitempty"` // minute, hour, day or week
}

// DecideGroup decides about an error group, and returns it.
func (c *Client) DecideGroup(ctx context.Context, key, group string, decision GroupDecision) (ErrorGroup, error) {
	return c.changeGroup(ctx, key, http.MethodPatch, "/error-groups/"+url.PathEscape(group), decision)
}

func (c *Client) changeGroup(ctx context.Context, key, method, path string, what any) (ErrorGroup, error) {
	return send[ErrorGroup](ctx, c, key, method, path, what)
}

// An ErrorSample is one stored occurrence.
type ErrorSample struct {
	Entry       string    `json:"entry_id"`
	Hash        string    `json:"hash"` // by which errors like it are split off; empty: nothing tells it from the others
	Time        time.Time `json:"time"`
	Level       string    `json:"level"`
	Environment string    `json:"environment"`
	Message     string    `json:"message"`
	Exceptions  []struct {
		Type       string `json:"type"`
		Message    string `json:"message"`
		MoreFrames int    `json:"more_frames"`
	} `json:"exceptions"` // the root cause first
	Frames []struct {
		Exception int    `json:"exception"` // index of Exceptions
		Module    string `json:"module"`
		Function  string `json:"function"`
		File      string `json:"file"`
		Line      int    `json:"line"`
		InApp     bool   `json:"in_app"`
	} `json:"frames"` // the innermost first
}

// ErrorGroups lists the groups of project.
func (c *Client) ErrorGroups(ctx context.Context, key, project string) (groups []ErrorGroup, err error) {
	path := "/projects/" + url.PathEscape(project) + "/error-groups?limit=" + pageLimit
	err = each(ctx, c, path, apiKey(key), func(group ErrorGroup) error {
		groups = append(groups, group)
		return nil
	})
	return groups, err
}

// ErrorGroup reads one group with its samples.
func (c *Client) ErrorGroup(ctx context.Context, key, id string) (ErrorGroup, error) {
	path := "/error-groups/" + url.PathEscape(id)
	return call[ErrorGroup](ctx, c, Request{Method: http.MethodGet, Path: path, Header: apiKey(key)})
}

// EachOccurrence calls visit with the log entries of an error group, the newest first, in pages of limit; 0: as many as one can hold.
func (c *Client) EachOccurrence(ctx context.Context, key, group string, limit int, visit func(StoredEntry) error) error {
	size := pageLimit
	if limit > 0 {
		size = strconv.Itoa(limit)
	}
	return each(ctx, c, "/error-groups/"+url.PathEscape(group)+"/occurrences?limit="+size, apiKey(key), visit)
}
