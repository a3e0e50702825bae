package http

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// A project or key with an exhausted budget gets 429 with its id, limit
// and use; the outcome names the budget. Others continue.
func TestBudgetRefuses(t *testing.T) {
	other := "weir_" + strings.Repeat("ef", 24)
	for _, c := range []struct {
		name, reason, member, id string
		budget                   ingest.Budget
	}{
		{"a project", contract.ReasonProjectBudget, "project", "prj_1", ingest.Budget{Spender: ingest.Spender{Project: "prj_1"}, Limit: 100, Used: 20}},
		{"a key", contract.ReasonKeyBudget, "key", "key_1", ingest.Budget{Spender: ingest.Spender{Key: "key_1"}, Limit: 100, Used: 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			account := plenty
			account.Budgets = []ingest.Budget{c.budget}
			in, to := newIntake(t, &memoryLog{}, account), &outcomesLog{}
			in.Service.Outcomes = outcomes.NewMeter(outcomes.Config{Process: "run_1", Interval: time.Hour, Clock: in.Service.Clock, To: to})
			value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_2", Organization: "org_1", Project: "prj_2", State: contract.CredentialActive})
			if err != nil || in.Service.Credentials.Apply(contract.CredentialKey(other), value) != nil {
				t.Fatal(err)
			}
			var codes []int
			var body map[string]any
			for range 3 { // 65 of 80 bytes; 15 are left; not read
				answer := serve(in, newPost(strings.NewReader(`{"logs":[`+goodEntry+`]}`)))
				codes = append(codes, answer.Code)
				if answer.Code == http.StatusTooManyRequests && body == nil {
					if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !slices.Equal(codes, []int{200, 429, 429}) {
				t.Fatalf("answered %v", codes)
			}
			if answer := serve(in, newPost(strings.NewReader(`{"logs":[`+goodEntry+`]}`), "X-Api-Key", other)); answer.Code != http.StatusOK {
				t.Errorf("another project: %d %s", answer.Code, answer.Body)
			}
			budget, _ := body["budget"].(map[string]any)
			if body["code"] != codeQuotaExceeded || budget[c.member] != c.id || budget["limit"] != 100.0 || budget["used"] != 85.0 || budget["remaining"] != 15.0 ||
				budget["resets_at"] != "2026-12-01T00:00:00Z" || !strings.Contains(fmt.Sprint(body["detail"]), c.id) {
				t.Errorf("answered %v", body)
			}
			if err := in.Service.Outcomes.Finish(); err != nil || len(to.refused) == 0 {
				t.Fatalf("%v, published %+v", err, to.refused)
			}
			want := outcomes.Refusal{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Environment: "prod", RequestID: to.refused[0].RequestID, At: start,
				Bytes: 65, Remaining: 15, PeriodStart: calendar.PeriodAt(start, 1).Start, Quota: 100, Exhausts: true, Requests: 1, Reason: c.reason}
			if to.refused[0] != want {
				t.Errorf("published %+v, want %+v", to.refused[0], want)
			}
			if !slices.ContainsFunc(to.counts, func(n outcomes.Count) bool {
				return n.Outcome == contract.OutcomeQuotaExceeded && n.Reason == c.reason && n.Requests == 2
			}) {
				t.Errorf("counted %+v", to.counts)
			}
		})
	}
}
