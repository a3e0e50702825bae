package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/ruletext"
	"github.com/weirlog/weir/shared/testenv"
)

// Who may sets rules: each new text is told once, in the transaction that keeps it. What is not told
// is not kept.
func TestSet(t *testing.T) {
	directory := identity.NewDirectory()
	created, err := json.Marshal(contract.ProjectCreated{Organization: "org_1", Project: "prj_1"})
	testenv.Must(t, err)
	testenv.Must(t, directory.Apply(contract.TypeProjectCreated, created))
	var told []rules.Change
	var woken int
	var broken error
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	service := &rules.Service{
		Pool: pgtest.Open(t, postgres.Schema, postgres.Migrations()...), Searches: &searches.Service{Directory: directory},
		Save: func(_ context.Context, _ pgx.Tx, c rules.Change) error {
			told = append(told, c)
			return broken
		},
		Saved: func() { woken++ }, Clock: func() time.Time { return now },
	}
	key := identity.Principal{Organization: "org_1", Project: "prj_1", ID: "key_1"}
	member := identity.Principal{Organization: "org_1", ID: "ses_1", Member: "mem_1", Name: "Ada", Scopes: []string{identity.RoleScope("developer")}}
	viewer, narrow, stranger := member, key, key
	viewer.Scopes, narrow.Access, stranger.Organization = []string{identity.RoleScope("viewer")}, contract.AccessProject, "org_2"
	lost := errors.New("lost")
	zero := new(int64)
	for _, c := range []struct {
		name   string
		who    identity.Principal
		wish   ruletext.Wish
		broken error
		want   int64 // the newest version then
		status int   // of a Problem; 0: it is granted
	}{
		{"by a viewer", viewer, ruletext.Wish{Text: "drop a"}, nil, 0, http.StatusForbidden},
		{"by a key of one project", narrow, ruletext.Wish{Text: "drop a"}, nil, 0, http.StatusForbidden},
		{"by another organization", stranger, ruletext.Wish{Text: "drop a"}, nil, 0, http.StatusNotFound},
		{"no rule", key, ruletext.Wish{Text: "teleport a"}, nil, 0, http.StatusBadRequest},
		{"not told", key, ruletext.Wish{Text: "drop a"}, lost, 0, -1},
		{"the first", key, ruletext.Wish{Text: "drop a", IfVersion: zero}, nil, 1, 0},
		{"the same request again", key, ruletext.Wish{Text: "drop a", IfVersion: zero}, nil, 1, 0},
		{"another one", member, ruletext.Wish{Text: "drop b", Note: "why"}, nil, 2, 0},
		{"the first request, late", key, ruletext.Wish{Text: "drop a", IfVersion: zero}, nil, 2, -1},
		{"restored", member, ruletext.Wish{Restore: 1}, nil, 3, 0},
	} {
		c.wish.Project, broken = "prj_1", c.broken
		_, err := service.Set(t.Context(), c.who, rules.Origin{Request: c.name}, c.wish)
		var problem *httpapi.Problem
		if errors.As(err, &problem) && problem.Status != c.status || problem == nil && (err != nil) != (c.status < 0) {
			t.Errorf("%s: %v", c.name, err)
		}
		if newest, err := service.Versions(t.Context(), key, "prj_1").Newest(); err != nil || newest.Number != c.want {
			t.Errorf("after %s: version %d, %v", c.name, newest.Number, err)
		}
	}
	if len(told) != 4 || woken != 3 {
		t.Fatalf("told %+v, woken %d times", told, woken)
	}
	want := postgres.Rules{Organization: "org_1", Project: "prj_1"}
	want.Version = ruletext.Version{Number: 2, Text: "drop b", Note: "why", By: "mem_1", ByName: "Ada", At: now}
	if c := told[2]; c.Rules != want || c.Former.Text != "drop a" || c.Request != "another one" {
		t.Errorf("told %+v", c)
	}
	for _, of := range []struct {
		who     identity.Principal
		project string
	}{{stranger, "prj_1"}, {key, "prj_2"}, {key, ""}} {
		var problem *httpapi.Problem
		if _, err := service.Versions(t.Context(), of.who, of.project).Newest(); !errors.As(err, &problem) || problem.Status != http.StatusNotFound {
			t.Errorf("%q of %s: %v", of.project, of.who.Organization, err)
		}
	}
}
