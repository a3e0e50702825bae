package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// An ErrorGroup is one kind of error and how often it was seen.
type ErrorGroup struct {
	ID          string         `json:"id"`
	Project     string         `json:"project"`
	Title       string         `json:"title"`
	Type        string         `json:"type"`
	Culprit     string         `json:"culprit"`
	Status      string         `json:"status"`
	Count       int64          `json:"count"`
	FirstSeen   time.Time      `json:"first_seen"`
	LastSeen    time.Time      `json:"last_seen"`
	Occurrences []ErrorSample  `json:"occurrences"`
	Why         map[string]any `json:"why"`
}

// An ErrorSample is one stored occurrence.
type ErrorSample struct {
	Entry string    `json:"entry"`
	Time  time.Time `json:"time"`
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
