package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ErrorRules are a version of the rules by which errors of a project are grouped.
type ErrorRules struct {
	Version  int64      `json:"version"`
	Since    *time.Time `json:"since"`
	Actor    string     `json:"actor"`
	Name     string     `json:"actor_name"`
	Note     string     `json:"note"`
	Restored int64      `json:"restored"`
	Rules    string     `json:"rules"`
}

// A RulesChange sets the rules of a project.
type RulesChange struct {
	Rules     *string `json:"rules,omitempty"` // nil: those of a version to restore
	Note      string  `json:"note,omitempty"`
	IfVersion *int64  `json:"if_version,omitempty"` // refuses another version; nil: none
}

// RulesPreview is what rules would do to errors of the last days.
type RulesPreview struct {
	Since      time.Time    `json:"since"`
	Groups     int64        `json:"groups"`
	Samples    int64        `json:"samples"`
	Unknown    int64        `json:"unknown_samples"`
	Incomplete bool         `json:"incomplete"`
	Joins      []RulesJoin  `json:"joins"`
	Splits     []RulesSplit `json:"splits"`
	Moves      []RulesSplit `json:"moves"`
	MoreJoins  int64        `json:"more_joins"`
	MoreSplits int64        `json:"more_splits"`
	MoreMoves  int64        `json:"more_moves"`
}

// A RulesJoin is several groups that would be one.
type RulesJoin struct {
	Into   RulesSide   `json:"into"`
	Groups []RulesSide `json:"groups"`
}

// A RulesSplit is a group that would be others.
type RulesSplit struct {
	Group RulesSide   `json:"group"`
	Into  []RulesSide `json:"into"`
}

// A RulesSide is a group of now, or one that there would be.
type RulesSide struct {
	ID      string   `json:"id"` // empty: a new one
	Title   string   `json:"title"`
	Values  []string `json:"values"`
	Rule    string   `json:"rule"`
	Count   int64    `json:"count"`
	Samples int64    `json:"samples"`
}

// RulesPath is that of a project's rules.
func RulesPath(project string) string { return "/projects/" + url.PathEscape(project) + "/error-rules" }

// SetRules sets the rules of a project, and returns them.
func (c *Client) SetRules(ctx context.Context, key, project string, change RulesChange) (ErrorRules, error) {
	return send[ErrorRules](ctx, c, key, http.MethodPut, RulesPath(project), change)
}

// RestoreRules sets them as they were in an earlier version.
func (c *Client) RestoreRules(ctx context.Context, key, project string, version int64, change RulesChange) (ErrorRules, error) {
	return send[ErrorRules](ctx, c, key, http.MethodPost, RulesPath(project)+"/versions/"+strconv.FormatInt(version, 10)+"/restore", change)
}

// PreviewRules says what rules would do, and changes nothing.
func (c *Client) PreviewRules(ctx context.Context, key, project, rules string) (json.RawMessage, error) {
	return send[json.RawMessage](ctx, c, key, http.MethodPost, RulesPath(project)+"/preview", RulesChange{Rules: &rules})
}

// send sends value as JSON.
func send[T any](ctx context.Context, c *Client, key, method, path string, value any) (out T, err error) {
	body, err := json.Marshal(value)
	if err != nil {
		return out, err
	}
	header := apiKey(key)
	header["Content-Type"] = "application/json"
	return call[T](ctx, c, Request{Method: method, Path: path, Header: header, Body: body})
}
