package audit

import (
	"encoding/csv"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

func line(sequence int64, name string) tenants.AuditEvent {
	return tenants.AuditEvent{
		Organization: "org_1", Sequence: sequence, At: time.Date(2026, 11, 20, 12, 0, 0, 1000, time.UTC), Action: "project.created",
		Target: tenants.Target{Kind: "project", ID: "prj_1", Name: name}, ActorName: "Ada",
		After: tenants.Fields{"name": name}.JSON(),
	}
}

// A spreadsheet shows every name as text,
// and any reader of CSV gets it whole.
func TestFieldsAreText(t *testing.T) {
	names := map[string]string{
		"Shop": "Shop", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\tx": "'\tx", "\rx": "'x",
		`a "quoted", name`: `a "quoted", name`, "two\nlines": "two\nlines", "": "", "ä=": "ä=",
	}
	for given, want := range names {
		answer := httptest.NewRecorder()
		serveCSV(answer, "org_1", []tenants.AuditEvent{line(1, given)}, none)
		rows, err := csv.NewReader(answer.Body).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%q: %d rows, %v", given, len(rows), err)
		}
		if got := rows[1][slices.Index(rows[0], "target_name")]; got != want {
			t.Errorf("%q is written as %q, want %q", given, got, want)
		}
	}
}

func none(int64) ([]tenants.AuditEvent, error) { return nil, nil }

// All pages are served, one after another, with
// the line ends of RFC 4180 and a file name.
func TestServeGoesOn(t *testing.T) {
	var asked []int64
	next := func(before int64) ([]tenants.AuditEvent, error) {
		if asked = append(asked, before); before == 1 {
			return nil, nil
		}
		return []tenants.AuditEvent{line(before-1, "x")}, nil
	}
	answer := httptest.NewRecorder()
	serveCSV(answer, "*", []tenants.AuditEvent{line(4, "x"), line(3, "x")}, next)
	if got := strings.Count(answer.Body.String(), "\r\n"); got != 5 || !slices.Equal(asked, []int64{3, 2, 1}) {
		t.Errorf("%d lines, asked behind %v:\n%s", got, asked, answer.Body)
	}
	if got := answer.Header().Get("Content-Disposition"); got != `attachment; filename="audit-installation.csv"` {
		t.Errorf("saved as %s", got)
	}
}

// A file that could not be written to its end is cut visibly.
func TestServeBreaksOff(t *testing.T) {
	defer func() {
		if got, _ := recover().(error); !errors.Is(got, http.ErrAbortHandler) {
			t.Errorf("got %v", got)
		}
	}()
	serveCSV(httptest.NewRecorder(), "org_1", []tenants.AuditEvent{line(1, "x")},
		func(int64) ([]tenants.AuditEvent, error) { return nil, errors.New("away") })
}
