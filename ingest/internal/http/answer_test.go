package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/testenv"
)

// An outcomesLog records published outcomes.
type outcomesLog struct {
	counts  []outcomes.Count
	refused []outcomes.Refusal
}

func (l *outcomesLog) Counted(_ context.Context, facts []outcomes.Counts) error {
	for _, fact := range facts {
		l.counts = append(l.counts, fact.Counts...)
	}
	return nil
}

func (l *outcomesLog) Refused(_ context.Context, facts []outcomes.Refusal) error {
	l.refused = append(l.refused, facts...)
	return nil
}

const (
	goodEntry = `{"timestamp":"2026-11-20T10:00:00Z","level":"info","message":"m"}` // 65 bytes
	badEntry  = `{"timestamp":"2026-11-20T10:00:00Z","level":"loud","message":"m"}`
)

// Each request's outcome is counted with its reason, size, and whether
// its key was in the body.
func TestOutcomesAreCounted(t *testing.T) {
	const notice = `{"timestamp":"2026-01-31T12:00:00Z","level":"warn","message":"dropped 9 entries","metadata":{"dropped_by_client":{"queue_full":7,"moon_phase":2}},"environment":"dev"}`
	const good, mixed = `{"logs":[` + goodEntry + `]}`, `{"logs":[` + goodEntry + `,` + badEntry + `]}`
	few := ingest.Account{Limit: 100, NextLimit: 100}
	for _, c := range []struct {
		name    string
		account ingest.Account
		broken  bool
		bodies  []string
		headers []string
		rules   string
		want    []string // outcome/reason requests entries bytes
	}{
		{name: "accepted", account: plenty, bodies: []string{good, good}, want: []string{"accepted/ 2 2 130"}},
		{name: "in part", account: plenty, bodies: []string{mixed}, want: []string{"accepted/ 1 1 65", "rejected/invalid_entries 0 1 65"}},
		{name: "strict", account: plenty, bodies: []string{mixed}, headers: []string{"Prefer", "handling=strict"}, want: []string{"rejected/invalid_entries 1 2 65"}},
		{name: "no entries", account: plenty, bodies: []string{`{"logs":[]}`}, want: []string{"rejected/empty_batch 1 0 11"}},
		{name: "no JSON", account: plenty, bodies: []string{`{`}, want: []string{"rejected/invalid_json 1 0 1"}},
		{name: "key in the body", account: plenty, bodies: []string{strings.Replace(good, "{", `{"api_key":"`+secret+`",`, 1)}, headers: []string{"X-Api-Key", ""},
			want: []string{"accepted/ 1 1 65 in body"}},
		{name: "dropped by the client", account: plenty, bodies: []string{`{"logs":[` + goodEntry + `,` + notice + `]}`}, headers: []string{"Idempotency-Key", "d"},
			want: []string{"accepted/ 1 2 231", "dropped_by_client/other 0 2 0", "dropped_by_client/queue_full 0 7 0"}},
		{name: "and told again", account: plenty, bodies: []string{`{"logs":[` + notice + `]}`, `{"logs":[` + notice + `]}`}, headers: []string{"Idempotency-Key", "d"},
			want: []string{"accepted/ 2 1 166", "dropped_by_client/other 0 2 0", "dropped_by_client/queue_full 0 7 0"}},
		{name: "no notice", account: plenty, bodies: []string{`{"logs":[` + strings.Replace(notice, "7", `"a"`, 1) + `]}`}, want: []string{"accepted/ 1 1 168"}},
		{name: "dropped by rules", account: plenty, rules: "drop m level:info", bodies: []string{mixed},
			want: []string{"accepted/ 1 0 0", "dropped_by_rule/drop 0 1 65", "rejected/invalid_entries 0 1 65"}},
		{name: "sampled after the charge", account: plenty, rules: "sample 0.000001% after the charge", bodies: []string{good, good}, headers: []string{"Idempotency-Key", "r"},
			want: []string{"accepted/ 2 0 65", "dropped_by_rule/sample 0 1 65"}},
		{name: "a notice dropped by rules", account: plenty, rules: "drop dropped", bodies: []string{`{"logs":[` + notice + `]}`},
			want: []string{"accepted/ 1 0 0", "dropped_by_client/other 0 2 0", "dropped_by_client/queue_full 0 7 0", "dropped_by_rule/drop 0 1 166"}},
		{name: "unreadable rules", account: plenty, rules: "teleport", bodies: []string{good}, want: []string{"overloaded/unavailable 1 1 65"}},
		{name: "replayed", account: plenty, bodies: []string{good, good}, headers: []string{"Idempotency-Key", "k"}, want: []string{"accepted/ 2 1 65"}},
		{name: "no broker", account: plenty, broken: true, bodies: []string{good}, want: []string{"overloaded/unavailable 1 1 65"}},
		{name: "over the quota", account: few, bodies: []string{good, good, good}, want: []string{"accepted/ 1 1 65", "quota_exceeded/ 2 1 141"}}, // the last is not read
		{name: "suspended", account: ingest.Account{Limit: 100, NextLimit: 100, Suspended: true}, bodies: []string{good}, want: []string{"quota_exceeded/suspended 1 0 76"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &memoryLog{}
			if c.broken {
				log.err = errors.New("no broker")
			}
			in, to := newIntake(t, log, c.account), &outcomesLog{}
			in.Service.Outcomes = outcomes.NewMeter(outcomes.Config{Process: "run_1", Interval: time.Hour, Clock: in.Service.Clock, To: to})
			in.Service.Rules = rules.NewBook(nil, in.Service.Clock)
			if err := in.Service.Rules.Set("prj_1", 1, c.rules); (err != nil) != (c.rules == "teleport") {
				t.Fatal(err)
			}
			for _, body := range c.bodies {
				r := newPost(strings.NewReader(body), c.headers...)
				if r.Header.Get("X-Api-Key") == "" {
					r.Header.Del("X-Api-Key")
				}
				serve(in, r)
			}
			testenv.Must(t, in.Service.Outcomes.Finish())
			var got []string
			for _, count := range to.counts {
				if count.Project != "prj_1" || count.APIKey != "key_1" || count.Environment != "prod" {
					t.Errorf("counted of %+v", count)
				}
				line := fmt.Sprintf("%s/%s %d %d %d", count.Outcome, count.Reason, count.Requests, count.Entries, count.Bytes)
				if count.KeyInBody > 0 {
					line += " in body"
				}
				got = append(got, line)
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("counted %q, want %q", got, c.want)
			}
		})
	}
}

// Rate limits are counted by level. Ended keys count too, unknown ones don't.
func TestOutcomesOfRefusedKeys(t *testing.T) {
	in, to := newIntake(t, &memoryLog{}, plenty), &outcomesLog{}
	in.Service.Outcomes = outcomes.NewMeter(outcomes.Config{Process: "run_1", Interval: time.Hour, Clock: in.Service.Clock, To: to})
	slow, ended := "weir_"+strings.Repeat("ef", 24), "weir_"+strings.Repeat("cd", 24)
	for key, credential := range map[string]contract.Credential{
		slow:  {Kind: contract.CredentialAPIKey, ID: "key_2", Organization: "org_1", Project: "prj_1", State: contract.CredentialActive, RatePerMinute: 1},
		ended: {Kind: contract.CredentialAPIKey, ID: "key_3", Organization: "org_1", Project: "prj_1", State: contract.CredentialRevoked},
	} {
		value, err := json.Marshal(credential)
		if err != nil || in.Service.Credentials.Apply(contract.CredentialKey(key), value) != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{slow, slow, ended, "weir_" + strings.Repeat("01", 24)} {
		serve(in, newPost(strings.NewReader(`{"logs":[`+goodEntry+`]}`), "X-Api-Key", key))
	}
	testenv.Must(t, in.Service.Outcomes.Finish())
	var got []string
	for _, count := range to.counts {
		got = append(got, fmt.Sprintf("%s %s/%s %d", count.APIKey, count.Outcome, count.Reason, count.Requests))
	}
	want := []string{"key_2 accepted/ 1", "key_2 rate_limited/key 1", "key_3 rejected/api_key_revoked 1"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("counted %q, want %q", got, want)
	}
}

// A refusal by quota is published with what was left, and exhausts the
// quota unless it may be a repeat.
func TestRefusalsArePublished(t *testing.T) {
	for _, c := range []struct {
		name     string
		headers  []string
		exhausts bool
	}{{"a new request", nil, true}, {"perhaps a repeated one", []string{"Idempotency-Key", "k"}, false}} {
		in, to := newIntake(t, &memoryLog{}, ingest.Account{Limit: 30, NextLimit: 30}), &outcomesLog{}
		in.Service.Outcomes = outcomes.NewMeter(outcomes.Config{Process: "run_1", Interval: time.Hour, Clock: in.Service.Clock, To: to})
		answer := serve(in, newPost(strings.NewReader(`{"logs":[`+goodEntry+`]}`), c.headers...))
		if err := in.Service.Outcomes.Finish(); err != nil || answer.Code != http.StatusTooManyRequests || len(to.refused) != 1 {
			t.Fatalf("%s: %d %v, published %+v", c.name, answer.Code, err, to.refused)
		}
		want := outcomes.Refusal{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Environment: "prod", RequestID: to.refused[0].RequestID, At: start,
			Bytes: 65, Remaining: 30, PeriodStart: calendar.PeriodAt(start, 1).Start, Quota: 30, Exhausts: c.exhausts, Requests: 1}
		if to.refused[0] != want {
			t.Errorf("%s: published %+v, want %+v", c.name, to.refused[0], want)
		}
	}
}

// A body that one entry makes invalid is refused whole: the answer names the entry.
func TestInvalidBodyNamesTheEntry(t *testing.T) {
	const entry = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"m","metadata":`
	deep := `{"logs":[` + entry + `{}},` + entry + `{"a":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}}]}`
	w := serve(newIntake(t, new(memoryLog), plenty), newPost(strings.NewReader(deep)))
	if !strings.Contains(w.Body.String(), `"errors":[{"index":1,`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
