package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Client calls one installation. Safe for concurrent use.
type Client struct {
	base string // ends in /v1
	http *http.Client
}

// New returns a client for base, which ends in /v1. It trusts the
// authorities in the PEM file caFile, by default the system's, and
// keeps at most that many idle connections.
func New(base, caFile string, connections int) (*Client, error) {
	pool, err := Authorities(caFile)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(0)},
		MaxIdleConns:        connections,
		MaxIdleConnsPerHost: connections,
		IdleConnTimeout:     time.Minute,
	}
	// The API redirects nobody, and a redirect would take the key along.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		base: strings.TrimSuffix(base, "/"), http: &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: stay},
	}, nil
}

// Authorities reads the certificates in the PEM file caFile; nil
// without one, which means the system's.
func Authorities(caFile string) (*x509.CertPool, error) {
	if caFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot read the authority in %q: there is no certificate in it", caFile)
	}
	return pool, nil
}

// Base returns the API's address, which ends in /v1.
func (c *Client) Base() string { return c.base }

// Through wraps the transport, such as with a check, before the first request.
func (c *Client) Through(wrap func(http.RoundTripper) http.RoundTripper) {
	c.http.Transport = wrap(c.http.Transport)
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Request is one call.
type Request struct {
	Method string
	Path   string // below /v1, with query
	Header map[string]string
	Body   []byte
}

// An Answer is a response of any status.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Call sends a request. After an error the request may have had its
// effect: only the answer is missing.
func (c *Client) Call(ctx context.Context, request Request) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, request.Method, c.base+request.Path, bytes.NewReader(request.Body))
	if err != nil {
		return Answer{}, err
	}
	for name, value := range request.Header {
		r.Header.Set(name, value)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot call %s %s: %w", request.Method, request.Path, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot read the answer to %s %s: %w", request.Method, request.Path, err)
	}
	return Answer{Status: answer.StatusCode, Header: answer.Header, Body: body}, nil
}

// Ready returns nil once the installation can serve.
func (c *Client) Ready(ctx context.Context) error {
	root := &Client{base: strings.TrimSuffix(c.base, "/v1"), http: c.http}
	answer, err := root.Call(ctx, Request{Method: http.MethodGet, Path: "/readyz"})
	if err != nil {
		return err
	}
	return answer.Problem()
}

// A Problem is an answer that is an error.
type Problem struct {
	Status     int           `json:"status"`
	Code       string        `json:"code"`
	Detail     string        `json:"detail"`
	RequestID  string        `json:"request_id"`
	Errors     []Fault       `json:"errors"`
	RetryAfter time.Duration `json:"-"` // 0: the answer has none
}

// A Fault is one fault of a request.
type Fault struct {
	Index   *int   `json:"index"`
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Fix     string `json:"fix"`
}

// Error makes a Problem an error.
func (p *Problem) Error() string {
	detail := p.Detail
	if len(p.Errors) == 1 {
		detail = strings.TrimSpace(detail + " " + p.Errors[0].Fix)
	}
	return fmt.Sprintf("%d %s: %s (%s)", p.Status, p.Code, detail, p.RequestID)
}

// Temporary reports whether the same request may succeed later.
func (p *Problem) Temporary() bool {
	return p.Status == http.StatusTooManyRequests || p.Status >= http.StatusInternalServerError
}

// Problem returns the answer as an error; nil for a success.
func (a Answer) Problem() error {
	if a.Status < http.StatusBadRequest {
		return nil
	}
	problem := &Problem{}
	if err := json.Unmarshal(a.Body, problem); err != nil {
		problem.Detail = string(a.Body)
	}
	problem.Status = a.Status
	if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err == nil {
		problem.RetryAfter = time.Duration(seconds) * time.Second
	}
	return problem
}

// call sends a request and reads a successful answer into out; any
// other is a Problem.
func call[T any](ctx context.Context, c *Client, request Request) (out T, err error) {
	answer, err := c.Call(ctx, request)
	if err != nil {
		return out, err
	}
	if err := answer.Problem(); err != nil {
		return out, fmt.Errorf("%s %s: %w", request.Method, request.Path, err)
	}
	if err := json.Unmarshal(answer.Body, &out); err != nil {
		return out, fmt.Errorf("cannot read the answer to %s %s: %w", request.Method, request.Path, err)
	}
	return out, nil
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

func apiKey(key string) map[string]string {
	return map[string]string{"X-Api-Key": key}
}

// post sends value as JSON.
func post[T any](ctx context.Context, c *Client, path string, header map[string]string, value any) (out T, err error) {
	body, err := json.Marshal(value)
	if err != nil {
		return out, err
	}
	header["Content-Type"] = "application/json"
	return call[T](ctx, c, Request{Method: http.MethodPost, Path: path, Header: header, Body: body})
}

// A List is one page of a list.
type List[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// each calls visit with every item of a list, page by page; path has a query.
func each[T any](ctx context.Context, c *Client, path string, header map[string]string, visit func(T) error) error {
	for cursor := ""; ; {
		page, err := call[List[T]](ctx, c, Request{Method: http.MethodGet, Path: path + cursor, Header: header})
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return err
			}
		}
		if page.NextCursor == nil {
			return nil
		}
		next := "&cursor=" + *page.NextCursor
		if next == cursor { // else it would ask the same again and again
			return fmt.Errorf("%s is answered without progress: try again later", path)
		}
		cursor = next
	}
}
