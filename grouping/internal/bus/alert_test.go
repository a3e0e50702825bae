package bus_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// alert makes an alert on new errors, changed as the test likes.
func (w *world) alert(change func(rule *grouping.AlertRule)) *postgres.Alert {
	w.t.Helper()
	rule := grouping.DefaultAlertRule()
	rule.Name, rule.NewFrom, rule.Members = "Shop", 1, []string{"mem_1", "mem_2"}
	if change != nil {
		change(&rule)
	}
	made, err := w.Alerts.Create(w.t.Context(), w.request(), "shop", rule)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// come applies errors of kinds, accepted now.
func (w *world) come(kinds ...int) {
	w.t.Helper()
	w.consume(w.failures(kinds...)...)
}

// send sends what is due.
func (w *world) send() {
	w.t.Helper()
	if err := w.Alerts.SendDue(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

var errUndone = errors.New("rolled back")

// comeInVain applies errors, and rolls back.
func (w *world) comeInVain(kinds ...int) {
	w.t.Helper()
	err := pg.InTxAsSystem(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		return cmp.Or(bus.Consumer{Errors: w.Errors}.Consume(w.t.Context(), tx, w.failures(kinds...)), errUndone)
	})
	if !errors.Is(err, errUndone) {
		w.t.Fatal(err)
	}
}

// told are the messages so far.
func (w *world) told() (facts []contract.ErrorAlert) {
	w.t.Helper()
	err := pg.InTxAsSystem(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(w.t.Context(), `SELECT body FROM facts WHERE type = $1 ORDER BY at, id`, contract.TypeErrorAlertFired)
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
		w.t.Fatal(err)
	}
	return facts
}

func (w *world) outcomes(id string) (text string) {
	w.t.Helper()
	log, err := w.Alerts.Log(w.t.Context(), member, "shop", id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, line := range log {
		text += fmt.Sprintf("%s %d; ", line.Outcome, line.Groups)
	}
	return text
}

// What is told follows once from what was counted, whatever transactions are
// rolled back and however many replicas send.
func TestAlertsTellOnce(t *testing.T) {
	a := newWorld(t)
	alert := a.alert(nil)
	a.comeInVain(1, 2, 1)
	a.comeInVain(1, 2, 1)
	a.come(1, 2, 1)
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			if err := a.Alerts.SendDue(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	senders.Wait()
	told := a.told()
	if len(told) != 1 || len(told[0].Groups) != 2 || told[0].Alert != alert.ID || told[0].Name != "Shop" || told[0].Project != "shop" ||
		told[0].Groups[0].Count+told[0].Groups[1].Count != 3 || told[0].Groups[0].Environment != "prod" || told[0].Groups[0].Cause != "It is new." ||
		!strings.HasPrefix(told[0].Groups[0].Path, "/console/errors/grp_") || told[0].MailTo == nil || len(told[0].MailTo.Members) != 2 {
		t.Errorf("told %+v", told)
	}
	a.now = a.now.Add(time.Minute)
	a.come(3)
	a.come(4, 1)
	a.send()
	if told := a.told(); len(told) != 1 {
		t.Errorf("within the gap: %+v", told)
	}
	a.now = a.now.Add(5 * time.Minute)
	a.send()
	if told := a.told(); len(told) != 2 || len(told[1].Groups) != 2 {
		t.Errorf("after the gap: %+v", told)
	}
	if got := a.outcomes(alert.ID); got != "sent 2; gathered 2; sent 2; " {
		t.Errorf("the log is %s", got)
	}
}

// An alert on spikes tells of the decision that a group spikes, once.
func TestAlertsOnSpikes(t *testing.T) {
	a := newWorld(t)
	a.now = time.Date(2026, 11, 20, 12, 10, 0, 0, time.UTC) // the hour of the errors
	a.alert(func(rule *grouping.AlertRule) { rule.Triggers = []grouping.Trigger{grouping.OnSpiking} })
	storm := make([]int, 2*grouping.MinSpike)
	for range 2 {
		a.come(storm...)
		a.send()
		a.now = a.now.Add(10 * time.Minute)
	}
	if told := a.told(); len(told) != 1 || len(told[0].Groups) != 1 || told[0].Groups[0].Trigger != "spiking" {
		t.Errorf("told %+v", told)
	}
}

// An alert holds for what is accepted after it was made, and is left by members
// who are gone; without its project it goes.
func TestAlertsBegin(t *testing.T) {
	a := newWorld(t)
	many := a.alert(func(rule *grouping.AlertRule) {
		rule.Triggers, rule.Count, rule.Per = []grouping.Trigger{grouping.OnMany}, 3, time.Minute
	})
	below := a.alert(func(rule *grouping.AlertRule) { rule.NewFrom = 2 })
	a.now = a.now.Add(-time.Minute) // those that wait in the log
	a.come(1, 1, 1, 1)
	a.now = a.now.Add(2 * time.Minute)
	a.come(1, 1, 2)
	a.send()
	if told := a.told(); len(told) != 0 {
		t.Errorf("too early: %+v", told)
	}
	a.come(1, 2)
	a.send()
	if told := a.told(); len(told) != 2 || told[0].Groups[0].Trigger == told[1].Groups[0].Trigger {
		t.Errorf("told %+v", told)
	}
	if got := a.outcomes(many.ID) + a.outcomes(below.ID); got != "sent 1; sent 1; below 1; " {
		t.Errorf("the logs are %s", got)
	}
	a.removed("mem_2")
	found, err := a.Alerts.List(t.Context(), member, "shop")
	if err != nil || len(found) != 2 || len(found[0].Members) != 1 || found[0].Members[0] != "mem_1" {
		t.Errorf("%+v, %v", found, err)
	}
}

// An alert on users tells once as many were affected as it asks for, whatever
// transactions count them; those of merged groups are users of the head.
func TestAlertsOnUsers(t *testing.T) {
	a := newWorld(t)
	a.alert(func(rule *grouping.AlertRule) {
		rule.Triggers, rule.Users, rule.UsersPer = []grouping.Trigger{grouping.OnUsers}, 3, time.Hour
	})
	affect := func(kind int, user string) int {
		a.consume(a.accept(a.now, strings.Replace(groupingtest.Failure(kind), "alice", user, 1)))
		a.send()
		return len(a.told())
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
	if _, err := a.Merges.Merge(t.Context(), a.request(), groups.MergeRequest{Groups: found.IDs()}); err != nil {
		t.Fatal(err)
	}
	if n := affect(2, "cem"); n != 1 {
		t.Errorf("the third user of all: told %d times", n)
	}
	if n := affect(1, "dan"); n != 1 || a.told()[0].Groups[0].Trigger != "users" {
		t.Errorf("another one: told %+v", a.told())
	}
}

// Of an organization at most so many messages are sent in an hour; then one
// tells what has waited.
func TestAlertsAreBounded(t *testing.T) {
	a := newWorld(t)
	alert := a.alert(func(rule *grouping.AlertRule) { rule.Gap = time.Minute })
	another := a.alert(func(rule *grouping.AlertRule) { rule.Triggers = []grouping.Trigger{grouping.OnRegressed} })
	err := pg.InTxAsSystem(t.Context(), a.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE error_alerts SET waiting = jsonb_build_object('hour', $2::timestamptz, 'sent', $3::int) WHERE id = $1`,
			another.ID, a.now.Truncate(time.Hour), postgres.MaxMessages)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	a.come(1)
	a.send()
	if told := a.told(); len(told) != 0 {
		t.Errorf("told %+v", told)
	}
	a.now = a.now.Add(time.Hour)
	a.come(2)
	a.send()
	if told := a.told(); len(told) != 1 || len(told[0].Groups) != 2 {
		t.Errorf("told %+v", told)
	}
	if got := a.outcomes(alert.ID); got != "sent 2; over_limit 1; " {
		t.Errorf("the log is %s", got)
	}
}

// An alert that chooses webhooks tells these alone; else those that ask for alerts are told.
func TestAlertsChooseWebhooks(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"whk_1", "whk_2"} {
		fact := fmt.Sprintf(`{"organization":"acme","webhook":%q,"host":"hooks.example","events":["error_alert.fired"],"on":true}`, id)
		if err := w.members.Apply(contract.TypeWebhookChanged, []byte(fact)); err != nil {
			t.Fatal(err)
		}
	}
	chosen := w.alert(func(rule *grouping.AlertRule) { rule.Webhooks = []string{"whk_2"} })
	asked := w.alert(nil)
	if reached := w.Alerts.Reaches("acme", &chosen.AlertRule); len(reached.Webhooks) != 1 || reached.Webhooks[0].ID != "whk_2" || reached.Members != 2 {
		t.Errorf("it reaches %+v", reached)
	}
	if reached := w.Alerts.Reaches("acme", &asked.AlertRule); len(reached.Webhooks) != 2 {
		t.Errorf("without a choice it reaches %+v", reached)
	}
	w.come(1)
	w.send()
	for _, fact := range w.told() {
		if only := fact.Alert == chosen.ID; fact.OnlyWebhooks != only || len(fact.Webhooks) == 1 != only {
			t.Errorf("%s tells %v, only these: %v", fact.Alert, fact.Webhooks, fact.OnlyWebhooks)
		}
	}
	if err := w.members.Apply(contract.TypeWebhookDeleted, []byte(`{"organization":"acme","webhook":"whk_2"}`)); err != nil {
		t.Fatal(err)
	}
	if reached := w.Alerts.Reaches("acme", &chosen.AlertRule); len(reached.Webhooks) != 0 {
		t.Errorf("after its webhook was deleted it reaches %+v", reached)
	}
}

// An alert of a service, a host and a member tells only of errors that have them.
func TestAlertsOfAServiceAndAMember(t *testing.T) {
	w := newWorld(t)
	ask := func(line string) string {
		return w.alert(func(rule *grouping.AlertRule) {
			if err := rule.Ask(line, "mem_1"); err != nil {
				t.Fatal(err)
			}
		}).ID
	}
	pays, others, mine, nobodys := ask("service:pay host:web-1"), ask("service:cart"), ask("assigned:me"), ask("assigned:nobody")
	w.owns(grouping.OwnerRule{Service: "pay", Assignee: "mem_1"})
	w.now = w.now.Add(time.Minute)
	of := func(kind int, service string) string {
		return strings.Replace(groupingtest.Failure(kind), `"request":`, `"service":"`+service+`","host":"web-1","request":`, 1)
	}
	w.consume(w.accept(w.now, of(1, "pay"), of(2, "search")))
	w.send()
	told := map[string]int{}
	for _, fact := range w.told() {
		told[fact.Alert] += len(fact.Groups)
	}
	if told[pays] != 1 || told[others] != 0 || told[mine] != 1 || told[nobodys] != 1 {
		t.Errorf("told %v, of %s of pay, %s of cart, %s mine, %s nobody's", told, pays, others, mine, nobodys)
	}
}
