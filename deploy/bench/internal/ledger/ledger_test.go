package ledger

import (
	"strings"
	"testing"
	"time"
)

// Each statement counts once, by its purpose.
func TestStatementsHaveAKind(t *testing.T) {
	for text, want := range map[string]string{
		`COPY "transfers_20261123" ("organization") FROM STDIN BINARY`:              "COPY of the transfers",
		`COPY "inbox_20261123" ("day") FROM STDIN BINARY`:                           "COPY into the inbox",
		`INSERT INTO usage_days AS u (organization, day) SELECT * FROM unnest($1)`:  "usage by day",
		`SELECT u.version FROM unpublished u JOIN organizations o JOIN books b`:     "account states",
		`INSERT INTO books (organization) SELECT * FROM unnest($1)`:                 "books",
		`SELECT o.organization FROM organizations o WHERE o.organization = ANY($1)`: "locks on organizations",
		`begin`: "the rest",
	} {
		if name := statementKinds[kindOf(text)].name; !strings.HasPrefix(name, want) {
			t.Errorf("%s counts as %q, want %q", text, name, want)
		}
	}
}

func TestStatementsAreOfEachRecord(t *testing.T) {
	each := statementTimes{4 * time.Second, time.Second}.perRecord(statementTimes{time.Second, time.Second}, 1000)
	if len(each) != 2 || each[0] != 3*time.Millisecond || each[1] != 0 {
		t.Errorf("3 s more for 1,000 records are %v", each)
	}
	if unknown := (statementTimes{}).perRecord(nil, 1000); unknown != nil {
		t.Errorf("where nothing was counted, there are %v", unknown)
	}
}

// A share without PostgreSQL's part is not judged; one below zero is shown.
func TestSharesOfChecks(t *testing.T) {
	if figure, goal := checkShare(time.Second, []time.Duration{0, time.Second}); figure != "–" || goal != "" {
		t.Errorf("without PostgreSQL: %s, %s", figure, goal)
	}
	if figure, goal := checkShare(-1, []time.Duration{time.Second, 0}); figure != "-0.0 %" || !strings.HasPrefix(goal, "met: of") {
		t.Errorf("below zero: %s, %s", figure, goal)
	}
}
