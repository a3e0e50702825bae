package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// alerting is a service that alerts, by a clock that the test moves.
type alerting struct {
	*groups.Service
	pool   *pgxpool.Pool
	now    *time.Time
	offset int64
}

func newAlerting(t *testing.T) *alerting {
	t.Helper()
	pool, now := open(t), time.Now().UTC().Truncate(time.Second)
	a := &alerting{pool: pool, now: &now}
	a.Service = groups.New(groups.Config{
		NewGroups: grouping.Budgets{Project: 1000, Organization: 1000}, Projects: identity.NewDirectory(), Pool: pool, Reads: pool, Concurrency: 2,
		Announce: bus.Announce, Tell: bus.SaveMessages, MaxAlerts: 50, Clock: func() time.Time { return *a.now }, Metrics: prometheus.NewRegistry(),
	})
	return a
}

func (a *alerting) request() groups.Request {
	return groups.Request{Who: identity.Principal{Organization: "acme"}, By: postgres.Author{ID: "mem_1"}}
}

// alert makes an alert on new errors, changed as the test likes.
func (a *alerting) alert(t *testing.T, change func(rule *grouping.AlertRule)) *postgres.Alert {
	t.Helper()
	rule := grouping.DefaultAlertRule()
	rule.Name, rule.NewFrom, rule.Members = "Shop", 1, []string{"mem_1", "mem_2"}
	if change != nil {
		change(&rule)
	}
	made, err := a.Alerts.Create(t.Context(), a.request(), "shop", rule)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// come applies errors of kinds, accepted now.
func (a *alerting) come(ctx context.Context, rolledBack bool, kinds ...int) error {
	var records []sharedbus.Record
	for _, kind := range kinds {
		l := logs(groupingtest.Failure(kind))
		l.Time = *a.now
		records = append(records, record(l, a.offset))
		a.offset++
	}
	undone := errors.New("rolled back")
	err := pg.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		if err := (bus.Consumer{Errors: a.Errors}).Consume(ctx, tx, records); err != nil || !rolledBack {
			return err
		}
		return undone
	})
	if rolledBack && errors.Is(err, undone) {
		return nil
	}
	return err
}

// told are the messages so far.
func (a *alerting) told(t *testing.T) (facts []contract.ErrorAlert) {
	t.Helper()
	err := pg.InTxAsSystem(t.Context(), a.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT body FROM facts WHERE type = $1 ORDER BY at, id`, contract.TypeErrorAlertFired)
		if err != nil {
			return err
		}
		bodies, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		for _, body := range bodies {
			var fact contract.ErrorAlert
			if err := json.Unmarshal(body, &fact); err != nil {
				return err
			}
			facts = append(facts, fact)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func (a *alerting) outcomes(t *testing.T, id string) (text string) {
	t.Helper()
	log, err := a.Alerts.Log(t.Context(), identity.Principal{Organization: "acme"}, "shop", id)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range log {
		text += fmt.Sprintf("%s %d; ", line.Outcome, line.Groups)
	}
	return text
}

// What is told follows once from what was counted, whatever transactions are
// rolled back and however many replicas send.
func TestAlertsTellOnce(t *testing.T) {
	a := newAlerting(t)
	alert := a.alert(t, nil)
	for _, rolledBack := range []bool{true, true, false} {
		if err := a.come(t.Context(), rolledBack, 1, 2, 1); err != nil {
			t.Fatal(err)
		}
	}
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			if err := a.Alerts.SendDue(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	senders.Wait()
	told := a.told(t)
	if len(told) != 1 || len(told[0].Groups) != 2 || told[0].Alert != alert.ID || told[0].Name != "Shop" || told[0].Project != "shop" ||
		told[0].Groups[0].Count+told[0].Groups[1].Count != 3 || told[0].Groups[0].Environment != "prod" || told[0].Groups[0].Cause != "It is new." ||
		!strings.HasPrefix(told[0].Groups[0].Path, "/console/errors/grp_") || told[0].MailTo == nil || len(told[0].MailTo.Members) != 2 {
		t.Errorf("told %+v", told)
	}
	*a.now = a.now.Add(time.Minute)
	if err := errors.Join(a.come(t.Context(), false, 3), a.come(t.Context(), false, 4, 1), a.Alerts.SendDue(t.Context())); err != nil {
		t.Fatal(err)
	}
	if told := a.told(t); len(told) != 1 {
		t.Errorf("within the gap: %+v", told)
	}
	*a.now = a.now.Add(5 * time.Minute)
	if err := a.Alerts.SendDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := a.told(t); len(told) != 2 || len(told[1].Groups) != 2 {
		t.Errorf("after the gap: %+v", told)
	}
	if got := a.outcomes(t, alert.ID); got != "sent 2; gathered 2; sent 2; " {
		t.Errorf("the log is %s", got)
	}
}

// An alert on spikes tells of the decision that a group spikes, once.
func TestAlertsOnSpikes(t *testing.T) {
	a := newAlerting(t)
	*a.now = time.Date(2026, 11, 20, 12, 10, 0, 0, time.UTC) // the hour of the errors
	a.alert(t, func(rule *grouping.AlertRule) { rule.Triggers = []grouping.Trigger{grouping.OnSpiking} })
	storm := make([]int, 2*grouping.MinSpike)
	for range 2 {
		if err := errors.Join(a.come(t.Context(), false, storm...), a.Alerts.SendDue(t.Context())); err != nil {
			t.Fatal(err)
		}
		*a.now = a.now.Add(10 * time.Minute)
	}
	if told := a.told(t); len(told) != 1 || len(told[0].Groups) != 1 || told[0].Groups[0].Trigger != "spiking" {
		t.Errorf("told %+v", told)
	}
}

// An alert holds for what is accepted after it was made, and is left by members
// who are gone; without its project it goes.
func TestAlertsBegin(t *testing.T) {
	a := newAlerting(t)
	many := a.alert(t, func(rule *grouping.AlertRule) {
		rule.Triggers, rule.Count, rule.Per = []grouping.Trigger{grouping.OnMany}, 3, time.Minute
	})
	below := a.alert(t, func(rule *grouping.AlertRule) { rule.NewFrom = 2 })
	*a.now = a.now.Add(-time.Minute) // those that wait in the log
	if err := a.come(t.Context(), false, 1, 1, 1, 1); err != nil {
		t.Fatal(err)
	}
	*a.now = a.now.Add(2 * time.Minute)
	if err := errors.Join(a.come(t.Context(), false, 1, 1, 2), a.Alerts.SendDue(t.Context())); err != nil {
		t.Fatal(err)
	}
	if told := a.told(t); len(told) != 0 {
		t.Errorf("too early: %+v", told)
	}
	if err := errors.Join(a.come(t.Context(), false, 1, 2), a.Alerts.SendDue(t.Context())); err != nil {
		t.Fatal(err)
	}
	if told := a.told(t); len(told) != 2 || told[0].Groups[0].Trigger == told[1].Groups[0].Trigger {
		t.Errorf("told %+v", told)
	}
	if got := a.outcomes(t, many.ID) + a.outcomes(t, below.ID); got != "sent 1; sent 1; below 1; " {
		t.Errorf("the logs are %s", got)
	}
	gone, _ := json.Marshal(contract.MemberRemoved{Organization: "acme", Member: "mem_2", RemovedAt: *a.now})
	removal := sharedbus.Record{Topic: contract.TopicTenants, Value: gone, Headers: []sharedbus.Header{{Key: contract.HeaderType, Value: []byte(contract.TypeMemberRemoved)}}}
	err := pg.InTx(t.Context(), a.pool, func(tx pgx.Tx) error { return bus.ConsumeTenants(t.Context(), tx, []sharedbus.Record{removal}) })
	if err != nil {
		t.Fatal(err)
	}
	found, err := a.Alerts.List(t.Context(), identity.Principal{Organization: "acme"}, "shop")
	if err != nil || len(found) != 2 || len(found[0].Members) != 1 || found[0].Members[0] != "mem_1" {
		t.Errorf("%+v, %v", found, err)
	}
}

// An alert on users tells once as many were affected as it asks for, whatever
// transactions count them; those of merged groups are users of the head.
func TestAlertsOnUsers(t *testing.T) {
	a := newAlerting(t)
	a.alert(t, func(rule *grouping.AlertRule) {
		rule.Triggers, rule.Users, rule.UsersPer = []grouping.Trigger{grouping.OnUsers}, 3, time.Hour
	})
	affect := func(kind int, user string) int {
		l := logs(strings.Replace(groupingtest.Failure(kind), "alice", user, 1))
		l.Time = *a.now
		r := record(l, a.offset)
		a.offset++
		err := pg.InTx(t.Context(), a.pool, func(tx pgx.Tx) error {
			return bus.Consumer{Errors: a.Errors}.Consume(t.Context(), tx, []sharedbus.Record{r})
		})
		if err := errors.Join(err, a.Alerts.SendDue(t.Context())); err != nil {
			t.Fatal(err)
		}
		return len(a.told(t))
	}
	for _, user := range []string{"ada", "bob", "ada", "bob"} {
		if n := affect(1, user); n != 0 {
			t.Errorf("%s: told %d times", user, n)
		}
	}
	affect(2, "cem")
	found, err := a.Groups.List(t.Context(), "acme", postgres.GroupQuery{Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Merges.Merge(t.Context(), a.request(), groups.Merging{Groups: found.IDs()}); err != nil {
		t.Fatal(err)
	}
	if n := affect(2, "cem"); n != 1 {
		t.Errorf("the third user of all: told %d times", n)
	}
	if n := affect(1, "dan"); n != 1 || a.told(t)[0].Groups[0].Trigger != "users" {
		t.Errorf("another one: told %+v", a.told(t))
	}
}

// Of an organization at most so many messages are sent in an hour; then one
// tells what has waited.
func TestAlertsAreBounded(t *testing.T) {
	a := newAlerting(t)
	alert := a.alert(t, func(rule *grouping.AlertRule) { rule.Gap = time.Minute })
	another := a.alert(t, func(rule *grouping.AlertRule) { rule.Triggers = []grouping.Trigger{grouping.OnRegressed} })
	err := pg.InTxAsSystem(t.Context(), a.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE error_alerts SET waiting = jsonb_build_object('hour', $2::timestamptz, 'sent', $3::int) WHERE id = $1`,
			another.ID, a.now.Truncate(time.Hour), postgres.MaxMessages)
		return err
	})
	if err := errors.Join(err, a.come(t.Context(), false, 1), a.Alerts.SendDue(t.Context())); err != nil {
		t.Fatal(err)
	}
	if told := a.told(t); len(told) != 0 {
		t.Errorf("told %+v", told)
	}
	*a.now = a.now.Add(time.Hour)
	if err := errors.Join(a.come(t.Context(), false, 2), a.Alerts.SendDue(t.Context())); err != nil {
		t.Fatal(err)
	}
	if told := a.told(t); len(told) != 1 || len(told[0].Groups) != 2 {
		t.Errorf("told %+v", told)
	}
	if got := a.outcomes(t, alert.ID); got != "sent 2; over_limit 1; " {
		t.Errorf("the log is %s", got)
	}
}
